//! How the program ends when it doesn't end well.

use std::{error::Error, io, process::ExitCode};

use eventflow::{
    event::{Fault, code},
    pki::PkiError,
    spoke::{
        ChangeError, ConnectError, ConsumeError, GroupError, PublishError, ReadError, RequestError,
        ScheduleError, StateError, SubscribeError, WaitError,
    },
};

use crate::output::remark;

/// Why the program ends.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong that a person should read.
    Told {
        /// Stable, `E_EVENTFLOW_…`.
        code: String,
        /// What, why and what to do.
        sentence: String,
    },
    /// An argument, or what it names, can't be used: wrong usage, before anything was sent.
    Misused {
        /// Stable, `E_EVENTFLOW_…`.
        code: String,
        /// Which, why and what to do.
        sentence: String,
    },
    /// It was told already.
    Silent {
        /// What to exit with.
        exit: u8,
    },
}

/// Cut short by a second signal.
pub(crate) const CUT_SHORT: Failure = Failure::Silent { exit: 130 };

impl Failure {
    pub(crate) fn new(code: &str, sentence: impl Into<String>) -> Self {
        Self::Told { code: code.to_owned(), sentence: sentence.into() }
    }

    pub(crate) fn misused(fault: Fault) -> Self {
        Self::Misused { code: fault.code, sentence: fault.message }
    }

    /// Says it on standard error, if there is anything to say.
    pub(crate) fn tell(&self) {
        if let Self::Told { code, sentence } | Self::Misused { code, sentence } = self {
            remark(&with_code(sentence, code));
        }
    }

    /// Says it on standard error and gives the exit code.
    pub(crate) fn exit(&self) -> ExitCode {
        self.tell();
        match self {
            Self::Told { code, .. } => ExitCode::from(number(code)),
            Self::Misused { .. } => ExitCode::from(2),
            Self::Silent { exit } => ExitCode::from(*exit),
        }
    }
}

/// The exit code for an error code.
fn number(error: &str) -> u8 {
    match error {
        // They are an argument's fault, whoever says so.
        code::INVALID_ID
        | code::INVALID_DOMAIN
        | code::INVALID_NAME
        | code::INVALID_PID
        | code::INVALID_EID
        | code::INVALID_GROUP
        | code::INVALID_RECURRING
        | code::INVALID_RULE
        | code::INVALID_ZONE
        | code::SCHEDULE_INVALID_DATE => 2,
        code::EVENT_NOT_FOUND
        | code::NOT_DEAD
        | code::SCHEDULE_NOT_FOUND
        | code::RECURRING_NOT_FOUND
        | code::CERTIFICATE_NOT_FOUND
        | code::GROUP_NOT_FOUND
        | code::BINDING_NOT_FOUND => 3,
        code::TIMEOUT | code::WAIT_TIMEOUT => 4,
        code::NO_HUB | code::HANDSHAKE | code::HUB_BUSY | code::HUB_DRAINING | code::HUB_RESTART => 69,
        code::BUNDLE
        | code::CERTIFICATE
        | code::CERTIFICATE_EXPIRED
        | code::CERTIFICATE_REVOKED
        | code::VAULT
        | code::INVALID_HOSTNAME
        | code::ADMIN_TOKEN => 77,
        _ => 1,
    }
}

/// The sentence with its code behind it, once.
pub(crate) fn with_code(sentence: &str, code: &str) -> String {
    if sentence.contains(code) { sentence.to_owned() } else { format!("{sentence} ({code})") }
}

/// The error and what it came from, as one sentence.
pub(crate) fn sentence(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Some errors show their source themselves.
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

macro_rules! from {
    ($($error:ty),+) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::new(error.code(), sentence(&error))
            }
        }
    )+};
}

from!(
    ChangeError,
    ConnectError,
    ConsumeError,
    GroupError,
    PkiError,
    PublishError,
    ReadError,
    RequestError,
    ScheduleError,
    StateError,
    SubscribeError,
    WaitError
);

/// Standard output or input. Whoever closed our output has seen enough: that is no fault.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Silent { exit: 0 },
            _ => Self::new(code::INTERNAL, format!("standard input or output failed: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn exit_codes() {
        for (error, expected) in [
            (code::EVENT_NOT_FOUND, 3),
            (code::NOT_DEAD, 3),
            (code::NO_HUB, 69),
            (code::HUB_DRAINING, 69),
            (code::HANDSHAKE, 69),
            (code::BUNDLE, 77),
            (code::CERTIFICATE, 77),
            (code::SCHEDULE_NOT_FOUND, 3),
            (code::TIMEOUT, 4),
            (code::WAIT_TIMEOUT, 4),
            (code::SCHEDULE_EXECUTED, 1),
            (code::SCHEDULE_INVALID_DATE, 2),
            (code::CERTIFICATE_EXPIRED, 77),
            (code::CERTIFICATE_REVOKED, 77),
            (code::CERTIFICATE_NOT_FOUND, 3),
            (code::GROUP_NOT_FOUND, 3),
            (code::BINDING_NOT_FOUND, 3),
            (code::INVALID_GROUP, 2),
            (code::INVALID_DOMAIN, 2),
            (code::DATA_FOLDER, 1),
            ("E_EVENTFLOW_OF_THE_FUTURE", 1),
        ] {
            assert_eq!(number(error), expected, "{error}");
        }
    }

    #[test]
    fn a_sentence_holds_its_cause_and_its_code_once() {
        let fault = Fault::refused(code::EVENT_CONFLICT, "the event a differs in data");
        let Failure::Told { code, sentence } = Failure::from(PublishError::Refused(fault)) else {
            panic!("it is to be told");
        };
        let text = with_code(&sentence, &code);
        assert_eq!(
            text,
            "the hub refused the event: the event a differs in data (E_EVENTFLOW_EVENT_CONFLICT)"
        );
        let late = PublishError::TimedOut { waited: Duration::from_secs(1), last: None };
        assert!(with_code(&super::sentence(&late), late.code()).ends_with("(E_EVENTFLOW_TIMEOUT)"));
    }

    #[test]
    fn a_closed_output_is_no_fault() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(failure, Failure::Silent { exit: 0 }));
    }
}
