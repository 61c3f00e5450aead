//! Runs the journal's messages by sqlx itself: sea-orm copies each value of a statement before it is sent, and the journal
//! sends some thousand texts at once while its only writer waits for them.

use std::sync::Arc;

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbErr, RuntimeErr, Statement, Value,
    sqlx::{self, Arguments as _, AssertSqlSafe, sqlite::SqliteArguments},
};

/// Runs the message; its answer is only that all went well.
pub(super) async fn run(connection: &DatabaseConnection, mut message: Statement) -> Result<(), DbErr> {
    let values = message.values.take().map_or_else(Vec::new, |values| values.0);
    let mut arguments = SqliteArguments::default();
    if !values.iter().all(is_plain) {
        message.values = Some(sea_orm::Values(values));
        return connection.execute_raw(message).await.map(drop);
    }
    arguments.reserve(values.len(), 0);
    for value in values {
        let added = match value {
            Value::String(text) => arguments.add(text),
            Value::BigInt(number) => arguments.add(number),
            Value::Int(number) => arguments.add(number),
            Value::Unsigned(number) => arguments.add(number),
            // None of these is there: see above.
            _ => Ok(()),
        };
        added.map_err(|error| DbErr::Exec(RuntimeErr::Internal(error.to_string())))?;
    }
    let query = sqlx::query_with(AssertSqlSafe(message.sql), arguments);
    let done = query.execute(connection.get_sqlite_connection_pool()).await;
    done.map(drop).map_err(|error| DbErr::Exec(RuntimeErr::SqlxError(Arc::new(error))))
}

/// Whether it is of a kind that is known here: all that the journal writes is.
fn is_plain(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::BigInt(_) | Value::Int(_) | Value::Unsigned(_))
}
