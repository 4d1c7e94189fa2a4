//! The header: format name and version, identifier size, creation time.

use super::IdSize;
use super::error::{FormatError, FormatErrorKind};
use super::sniff;
use super::{be_u32, be_u64};

/// Version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `JAVA PROFILE 1.0`: before JDK 1.2.
    V1_0,
    /// `JAVA PROFILE 1.0.1`: the HPROF agent, HotSpot up to JDK 8 for small heaps.
    V1_0_1,
    /// `JAVA PROFILE 1.0.2`: with heap dump segments.
    V1_0_2,
    /// `JAVA PROFILE 1.0.3`: Android.
    V1_0_3,
}

impl Version {
    /// Returns the name of the format, as at the start of the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "JAVA PROFILE 1.0",
            Self::V1_0_1 => "JAVA PROFILE 1.0.1",
            Self::V1_0_2 => "JAVA PROFILE 1.0.2",
            Self::V1_0_3 => "JAVA PROFILE 1.0.3",
        }
    }

    /// All versions; if one name is a prefix of others, it comes after them.
    pub const ALL: [Self; 4] = [Self::V1_0_1, Self::V1_0_2, Self::V1_0_3, Self::V1_0];
}

/// The header of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Version of the format.
    pub version: Version,
    /// Size of identifiers.
    pub id_size: IdSize,
    /// Creation time in milliseconds since 1970-01-01 UTC. 0 for Android and some other writers.
    pub created_ms: u64,
    /// Size of the header in bytes: the offset of the first record.
    pub len: usize,
}

/// Start of the name of every version of the format.
const START: &[u8] = b"JAVA PROFILE";

impl Header {
    /// Parses the header of a file.
    ///
    /// # Errors
    /// [`FormatErrorKind::Empty`], [`FormatErrorKind::NotADump`] with the apparent format,
    /// [`FormatErrorKind::HeaderCut`] or [`FormatErrorKind::IdSize`].
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.is_empty() {
            return Err(FormatError::new(FormatErrorKind::Empty, 0));
        }
        let version = Version::ALL
            .into_iter()
            .find(|version| {
                let name = version.name().as_bytes();
                bytes.starts_with(name) && bytes.get(name.len()) == Some(&0)
            })
            .ok_or_else(|| {
                // The file ends in the name of the format.
                if bytes.starts_with(START)
                    && Version::ALL.iter().any(|it| it.name().as_bytes().starts_with(bytes))
                {
                    return FormatError::new(FormatErrorKind::HeaderCut, bytes.len() as u64);
                }
                let looks_like = sniff::sniff(bytes).describe();
                FormatError::new(FormatErrorKind::NotADump(looks_like), 0)
            })?;
        let at = version.name().len() + 1;
        let cut = || FormatError::new(FormatErrorKind::HeaderCut, bytes.len() as u64);
        let id_size = match be_u32(bytes, at).ok_or_else(cut)? {
            4 => IdSize::Four,
            8 => IdSize::Eight,
            other => return Err(FormatError::new(FormatErrorKind::IdSize(other), at as u64)),
        };
        let created_ms = be_u64(bytes, at + 4).ok_or_else(cut)?;
        Ok(Self { version, id_size, created_ms, len: at + 12 })
    }
}
