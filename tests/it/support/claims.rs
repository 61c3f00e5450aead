//! Consuming with raw records: what a claim says, and groups that try again soon.

use super::Raw;

/// A claim that a link was sent.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub token: String,
    pub attempt: u32,
    pub id: String,
    pub data: String,
}

impl Raw {
    /// Consumes `domain` for a group, an empty name being the default one.
    pub async fn consume(&mut self, group: &str, domain: &str, options: &str) {
        let answer = self.ask(&["consume", "1", "1", group, domain, "*", options]).await;
        assert_eq!(answer[..3], ["ok", "1", "position"]);
    }

    /// The next claim; what else comes is passed over.
    pub async fn claim(&mut self) -> Claimed {
        loop {
            let record = self.event().await;
            if let ["claim", _, token, attempt, _, id, .., data] =
                record.iter().map(String::as_str).collect::<Vec<_>>()[..]
            {
                return Claimed {
                    token: token.to_owned(),
                    attempt: attempt.parse().unwrap(),
                    id: id.to_owned(),
                    data: data.to_owned(),
                };
            }
        }
    }

    /// Publishes an event of this id in `domain`.
    pub async fn publish(&mut self, domain: &str, id: &str) {
        let answer = self.ask(&["publish", "2", id, domain, "created", "p-1", "", "{\"total\":1}"]).await;
        assert_eq!(answer[..3], ["ok", "2", "committed"]);
    }

    /// Changes the settings of a group.
    pub async fn set(&mut self, group: &str, settings: &str) {
        let answer = self.ask(&["group", "3", group, &format!("{{\"set\":{settings}}}")]).await;
        assert_eq!(answer[0], "ok", "{answer:?}");
    }
}
