//! Event sourcing: an account is the sum of what happened to it. It is rebuilt from its log, page by page; a command
//! looks at it, decides, and appends the next event. Two tellers work on one account at once, and none overlooks what
//! the other did: what they append expects the log to end where they read it.

use eventflow::event::{Event, EventId, Expect};
use eventflow::hub::Hub;
use eventflow::spoke::{Publish, PublishError, Spoke, SpokeConfig};
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
    /// The last of them.
    last: Option<EventId>,
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
        self.last = Some(event.id.clone());
        Ok(())
    }

    /// A command: decides by the state, and says what happens.
    fn withdraw(&self, amount: u64) -> Result<(&'static str, Moved), String> {
        if amount > self.balance {
            return Err(format!("only {} there", self.balance));
        }
        Ok(("withdrawn", Moved { amount }))
    }

    /// Another command.
    fn deposit(&self, amount: u64) -> Result<(&'static str, Moved), String> {
        Ok(("deposited", Moved { amount }))
    }

    /// How the log must end for a decision by this state to hold.
    fn expectation(&self) -> Expect {
        self.last.clone().map_or(Expect::None, Expect::After)
    }
}

/// Loads, decides, appends; and all of it again if somebody else was faster: what was decided may not hold any more.
/// Says how often that was.
async fn execute(
    spoke: &Spoke,
    number: &str,
    decide: impl Fn(&Account) -> Result<(&'static str, Moved), String>,
) -> Result<u32, Failure> {
    let mut lost = 0;
    loop {
        let account = Account::load(spoke, number).await?;
        let (name, moved) = decide(&account)?;
        let event = Publish::new("accounts", name, number.to_owned()).data(&moved)?;
        match spoke.publish(event.expecting(account.expectation())).await {
            Ok(_) => return Ok(lost),
            Err(PublishError::LogConflict(_)) => lost += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Withdraws ten times.
async fn teller(spoke: Spoke, number: &'static str, amount: u64) -> Result<u32, Failure> {
    let mut lost = 0;
    for _ in 0..10 {
        lost += execute(&spoke, number, |account| account.withdraw(amount)).await?;
    }
    Ok(lost)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let hub = Hub::builder().in_memory().free_ports().start().await?;
    let spoke = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await?;
    let number = "account-7";

    execute(&spoke, number, |account| account.deposit(120)).await?;
    let other = Spoke::connect(SpokeConfig::from_bundle(hub.bundle())).await?;
    let (one, two) = tokio::join!(teller(spoke.clone(), number, 4), teller(other.clone(), number, 6));
    println!("one teller began anew {} times, the other {} times", one?, two?);
    if let Err(reason) = execute(&spoke, number, |account| account.withdraw(500)).await {
        println!("500 not withdrawn: {reason}");
    }

    let account = Account::load(&spoke, number).await?;
    println!("balance {} after {} events", account.balance, account.version);
    other.close().await;
    spoke.close().await;
    hub.shutdown().await?;
    Ok(())
}
