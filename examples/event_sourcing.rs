//! Event sourcing: an account is the sum of what happened to it. It is rebuilt from its log, page by page; a command
//! looks at it, decides, and appends the next event.

use eventflow::event::Event;
use eventflow::hub::Hub;
use eventflow::spoke::{Publish, Spoke, SpokeConfig};
use serde::{Deserialize, Serialize};

type Failure = Box<dyn std::error::Error>;

/// What can happen to an account: the name of the event, and its data.
#[derive(Debug, Serialize, Deserialize)]
struct Moved {
    amount: u64,
}

/// An account as its log tells it.
#[derive(Debug, Default, PartialEq)]
struct Account {
    balance: u64,
    /// How many events made it so.
    version: u64,
}

impl Account {
    /// Reads the whole log; a long one comes in pages.
    async fn load(spoke: &Spoke, number: &str) -> Result<Self, Failure> {
        let mut account = Self::default();
        let mut log = spoke.log("accounts", number).page_size(100);
        while let Some(page) = log.next_page().await? {
            for event in &page {
                account.apply(event)?;
            }
        }
        Ok(account)
    }

    /// The next state. Pure: an event has happened, it can't be refused any more.
    fn apply(&mut self, event: &Event) -> Result<(), Failure> {
        let moved: Moved = event.data.read()?;
        match event.name.as_str() {
            "deposited" => self.balance += moved.amount,
            "withdrawn" => self.balance -= moved.amount,
            // Of a later version of this program.
            _ => {}
        }
        self.version += 1;
        Ok(())
    }

    /// A command: decides by the state, and says what happens.
    fn withdraw(&self, amount: u64) -> Result<(&'static str, Moved), String> {
        if amount > self.balance {
            return Err(format!("only {} there", self.balance));
        }
        Ok(("withdrawn", Moved { amount }))
    }
}

/// Appends to the log of an account. The id is made of account and version: of two programs that decided by the same
/// state only one comes first, and the other is told `E_EVENTFLOW_EVENT_CONFLICT`, unless it says the very same.
async fn append(
    spoke: &Spoke,
    number: &str,
    account: &Account,
    (name, moved): (&'static str, Moved),
) -> Result<(), Failure> {
    let id = format!("{number}-{}", account.version + 1);
    spoke.publish(Publish::new("accounts", name, number.to_owned()).id(id).data(&moved)?).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let hub = Hub::builder().in_memory().free_ports().start().await?;
    let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await?;
    let number = "account-7";

    for amount in [70, 50] {
        let account = Account::load(&spoke, number).await?;
        append(&spoke, number, &account, ("deposited", Moved { amount })).await?;
    }
    for amount in [30, 500, 45] {
        let account = Account::load(&spoke, number).await?;
        match account.withdraw(amount) {
            Ok(event) => append(&spoke, number, &account, event).await?,
            Err(reason) => println!("{amount} not withdrawn: {reason}"),
        }
    }

    // Somebody who decided by an old state is too late.
    let old = Account { version: 3, balance: 90 };
    match append(&spoke, number, &old, ("deposited", Moved { amount: 1 })).await {
        Ok(()) => println!("deposited twice"),
        Err(error) => println!("too late: {error}"),
    }

    let account = Account::load(&spoke, number).await?;
    println!("balance {} after {} events", account.balance, account.version);
    spoke.close().await;
    hub.shutdown().await?;
    Ok(())
}
