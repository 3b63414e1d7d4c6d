//! Fields that are lists (RFC 9110, section 5.6.1).

/// Whether one of these values of a field lists this token.
pub(crate) fn lists<'a>(mut values: impl Iterator<Item = &'a [u8]>, token: &str) -> bool {
    let is_token = |item: &[u8]| item.trim_ascii().eq_ignore_ascii_case(token.as_bytes());
    values.any(|list| list.split(|&byte| byte == b',').any(is_token))
}
