//! The little DER that our own extensions need.

/// Universal tag of an octet string.
pub(super) const OCTET_STRING: u8 = 0x04;

/// A primitive context-specific tag.
pub(super) const fn context(number: u8) -> u8 {
    0x80 | number
}

/// A constructed context-specific tag.
pub(super) const fn constructed(number: u8) -> u8 {
    0xA0 | number
}

/// Tag, length, value. Contents above 65,535 bytes don't occur: ids and names have 64.
pub(super) fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
    let [_, _, high, low] = u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut out = vec![tag];
    match content.len() {
        0..=0x7F => out.push(low),
        0x80..=0xFF => out.extend([0x81, low]),
        _ => out.extend([0x82, high, low]),
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of encoded parts.
pub(super) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tlv(0x30, &parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_their_shortest_form() {
        assert_eq!(tlv(4, &[1, 2]), [4, 2, 1, 2]);
        assert_eq!(tlv(4, &[0; 0x7F])[..2], [4, 0x7F]);
        assert_eq!(tlv(4, &[0; 0x80])[..3], [4, 0x81, 0x80]);
        assert_eq!(tlv(4, &[0; 0x1FF])[..4], [4, 0x82, 0x01, 0xFF]);
        assert_eq!(sequence(&[]), [0x30, 0]);
    }
}
