//! Numbers of JSON by their exact decimal value, whatever their size.

/// A number of JSON in its normal form: ±0.`digits` · 10^`point`, where the digits neither begin nor end with a zero.
/// It borrows the digits from the text, so an exponent costs no more than its own length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decimal<'a> {
    negative: bool,
    /// The digits, in two parts.
    digits: (&'a str, &'a str),
    point: i128,
    /// Digits of an exponent that fits no machine number, which is then not part of `point`: two such numbers are the
    /// same only if their exponents are written the same.
    beyond: Option<(bool, &'a str)>,
}

impl<'a> Decimal<'a> {
    /// Takes the text of a JSON number.
    pub(super) fn of(text: &'a str) -> Self {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let (digits, point) = if whole.is_empty() {
            let digits = fraction.trim_start_matches('0');
            (("", digits), -length(fraction) + length(digits))
        } else if fraction.is_empty() {
            ((whole.trim_end_matches('0'), ""), length(whole))
        } else {
            ((whole, fraction), length(whole))
        };
        if digits == ("", "") {
            return Self { negative: false, digits, point: 0, beyond: None };
        }
        match exponent.parse::<i64>() {
            Ok(exponent) => Self { negative, digits, point: point + i128::from(exponent), beyond: None },
            Err(_) => {
                let digits_of_it = exponent.trim_start_matches(['+', '-']).trim_start_matches('0');
                let beyond = Some((exponent.starts_with('-'), digits_of_it));
                Self { negative, digits, point, beyond }
            }
        }
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.digits.0.bytes().chain(self.digits.1.bytes())
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.negative == other.negative
            && self.point == other.point
            && self.beyond == other.beyond
            && self.digits().eq(other.digits())
    }
}

/// A text in memory is far shorter than an `i128` counts.
fn length(text: &str) -> i128 {
    i128::try_from(text.len()).unwrap_or(i128::MAX)
}
