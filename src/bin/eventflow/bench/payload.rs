//! The data of an event: its number in the run, and what makes it as long as it is to be.

/// `[7,"xxx…"]` of so many bytes; a little more where the number alone needs that.
pub(super) fn data(number: usize, bytes: usize) -> String {
    let mut data = format!("[{number},\"");
    let filler = bytes.saturating_sub(data.len() + 2);
    data.reserve(filler + 2);
    data.extend(std::iter::repeat_n('x', filler));
    data + "\"]"
}

/// The number in it.
pub(super) fn number(data: &str) -> Option<usize> {
    data.strip_prefix('[')?.split_once(',')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_has_its_length_and_its_number() {
        for number in [0, 7, 1_234_567] {
            let data = data(number, 300);
            assert_eq!(data.len(), 300);
            assert_eq!(super::number(&data), Some(number));
            assert!(serde_json::from_str::<serde_json::Value>(&data).is_ok());
        }
        assert_eq!(data(12_345_678, 5), "[12345678,\"\"]");
        assert_eq!(number("{\"a\":1}"), None);
    }
}
