//! Sizes as users write them: `4096`, `10MB`, `1.5 GiB`.

/// Error for a text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size; sizes look like 4096, 512KiB, 10MB or 1.5GiB")]
pub struct ParseSizeError(String);

/// Parses a size. `KB`, `MB`, `GB` and `TB` are powers of 1000, `KiB`, `MiB`, `GiB` and `TiB` powers of 1024 (IEC
/// 80000-13); a letter alone, as in `512k`, is a power of 1024, as in the JVM's own options.
///
/// # Errors
/// If the text is not a size, or the size exceeds 64 bits.
pub fn parse(text: &str) -> Result<u64, ParseSizeError> {
    let wrong = || ParseSizeError(text.to_owned());
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let unit = match unit.trim() {
        "" => 1,
        unit => unit_bytes(unit).ok_or_else(wrong)?,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let decimals = u32::try_from(part.len()).ok().filter(|decimals| *decimals <= 9).ok_or_else(wrong)?;
    if whole.is_empty() || (part.is_empty() && number.contains('.')) {
        return Err(wrong());
    }
    let digits: u128 = format!("{whole}{part}").parse().map_err(|_| wrong())?;
    let bytes = digits.checked_mul(unit.into()).ok_or_else(wrong)? / 10u128.pow(decimals);
    u64::try_from(bytes).map_err(|_| wrong())
}

/// Returns the number of bytes of a unit in any case; see [`parse`].
pub fn unit_bytes(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("10b", 10),
            ("10MB", 10_000_000),
            ("10 MiB", 10 << 20),
            ("512k", 512 << 10),
            ("1.5GB", 1_500_000_000),
            ("1.5GiB", 3 << 29),
            ("0.5kB", 500),
            ("2T", 2 << 40),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for wrong in
            ["", "MB", ".5", "1.", "1..2", "1.2.3", "-1", "1e3", "10 PB", "99999999999T", "1.0000000001G"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
