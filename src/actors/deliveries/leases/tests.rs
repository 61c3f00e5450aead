use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Hold { token: Token, lease: u64 },
    LetGo(Token),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u64..12, 0_u64..40).prop_map(|(token, lease)| Step::Hold { token, lease }),
        2 => (0_u64..12).prop_map(Step::LetGo),
        3 => (0_u64..25).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn leases_end_when_a_plain_list_says_so(steps in proptest::collection::vec(step(), 1..200)) {
        let mut leases = Leases::default();
        let mut plain: Vec<(u64, Token)> = Vec::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Hold { token, lease } => {
                    leases.hold(token, now + lease);
                    plain.retain(|(_, held)| *held != token);
                    plain.push((now + lease, token));
                }
                Step::LetGo(token) => {
                    leases.let_go(token);
                    plain.retain(|(_, held)| *held != token);
                }
                Step::Pass(time) => now += time,
            }
            plain.sort_unstable();
            prop_assert_eq!(leases.next(), plain.first().map(|(end, _)| *end));
            if now.is_multiple_of(3) {
                let over: Vec<Token> = std::iter::from_fn(|| leases.over(now)).collect();
                let ended: Vec<Token> =
                    plain.extract_if(.., |(end, _)| *end <= now).map(|(_, token)| token).collect();
                prop_assert_eq!(over, ended);
            }
        }
        prop_assert_eq!(leases.ends.len(), plain.len());
    }
}

#[test]
fn a_wish_is_granted_within_bounds() {
    assert_eq!(granted(None, 30_000), 30_000);
    assert_eq!(granted(Some(0), 30_000), 1_000);
    assert_eq!(granted(Some(u64::MAX), 30_000), 3_600_000);
    assert_eq!(granted(Some(60_000), 30_000), 60_000);
    assert_eq!(granted(None, 5), 1_000, "the hub's own is kept within them too");
}
