//! Fields of a line, as C's `printf` writes them.

use super::Writer;

/// Rest of a line.
pub(super) struct Line<'t> {
    whole: &'t str,
    at: usize,
    pub(super) writer: Writer,
}

impl<'t> Line<'t> {
    pub(super) fn new(text: &'t str, writer: Writer) -> Self {
        Self { whole: text, at: 0, writer }
    }

    fn left(&self) -> &'t str {
        &self.whole[self.at..]
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.left().is_empty()
    }

    /// Exactly this text.
    pub(super) fn lit(&mut self, text: &str) -> Option<()> {
        let found = self.left().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found.then_some(())
    }

    /// Goes back over what was taken.
    pub(super) fn back(&mut self, bytes: usize) {
        self.at -= bytes;
    }

    /// Everything to the end of the line.
    pub(super) fn rest(&mut self) -> &'t str {
        let rest = self.left();
        self.at = self.whole.len();
        rest
    }

    /// Everything up to this text, which is taken too.
    pub(super) fn until(&mut self, text: &str) -> Option<&'t str> {
        let (before, _) = self.left().split_once(text)?;
        self.at += before.len() + text.len();
        Some(before)
    }

    /// Everything up to the last time that this text stands in the line, which is taken too.
    pub(super) fn until_last(&mut self, text: &str) -> Option<&'t str> {
        let (before, _) = self.left().rsplit_once(text)?;
        self.at += before.len() + text.len();
        Some(before)
    }

    fn digits(&mut self, is_digit: impl Fn(char) -> bool) -> Option<&'t str> {
        let left = self.left();
        let digits = &left[..left.find(|c| !is_digit(c)).unwrap_or(left.len())];
        self.at += digits.len();
        let good = !digits.is_empty() && (digits == "0" || !digits.starts_with('0'));
        good.then_some(digits)
    }

    /// `%u`: no sign, no leading zeros; the agent's have 32 bits.
    pub(super) fn dec(&mut self) -> Option<u64> {
        let number: u64 = self.digits(|c| c.is_ascii_digit())?.parse().ok()?;
        (self.writer == Writer::Convert || number <= u64::from(u32::MAX)).then_some(number)
    }

    /// `%d`.
    pub(super) fn int(&mut self) -> Option<i64> {
        let sign = if self.lit("-").is_some() { -1 } else { 1 };
        let number = i64::try_from(self.dec()?).ok()?;
        (sign > 0 || number > 0).then_some(sign * number)
    }

    /// Parses `%d` at the end of the line.
    pub(super) fn whole_int(mut self) -> Option<i64> {
        self.int().filter(|_| self.is_at_end())
    }

    /// `%x`: small letters, no leading zeros; the agent's have 32 bits.
    pub(super) fn hex(&mut self) -> Option<u64> {
        let digits = self.digits(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))?;
        let most = if self.writer == Writer::Agent { 8 } else { 16 };
        u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() <= most)
    }

    /// Spaces up to a field's minimum width; none before a field that is as wide or wider.
    fn padded<T>(&mut self, width: usize, field: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let start = self.at;
        while self.lit(" ").is_some() {}
        let spaces = self.at - start;
        let start = self.at;
        let value = field(self)?;
        (spaces == width.saturating_sub(self.at - start)).then_some(value)
    }

    /// `%5.2f%%`.
    fn percent(&mut self) -> Option<f64> {
        let value = self.padded(5, |line| {
            let start = line.at;
            line.digits(|c| c.is_ascii_digit())?;
            line.lit(".")?;
            let decimals = line.left().get(..2)?;
            line.at += 2;
            decimals.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
            line.whole[start..line.at].parse().ok()
        })?;
        self.lit("%").map(|()| value)
    }

    /// `%Nu %5.2f%% %5.2f%%`: rank, part, accumulated part.
    pub(super) fn ranked(&mut self, width: usize) -> Option<(u64, f64, f64)> {
        let rank = self.padded(width, Self::dec)?;
        self.lit(" ")?;
        let part = self.percent()?;
        self.lit(" ")?;
        Some((rank, part, self.percent()?))
    }

    /// ` %Nu`.
    pub(super) fn column(&mut self, width: usize) -> Option<u64> {
        self.lit(" ")?;
        self.padded(width, Self::dec)
    }
}

/// Text without anything that could end a line or move a cursor.
pub(super) fn is_text(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.contains(char::is_control))
}

/// `Sat Nov 21 01:58:24 2026`, with the right day of the week.
pub(super) fn is_ctime(text: &str) -> bool {
    read_ctime(text).is_some()
}

fn read_ctime(text: &str) -> Option<()> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let number = |text: &str, from: u32, to: u32| {
        let number = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u32>().ok())??;
        (from..=to).contains(&number).then_some(number)
    };
    if !text.is_ascii() || text.len() != 24 {
        return None;
    }
    let (weekday, month, day, year) = (&text[..3], &text[4..7], &text[8..10], &text[20..]);
    let spaces = [3, 7, 10, 19].iter().all(|at| &text[*at..=*at] == " ");
    let colons = [13, 16].iter().all(|at| &text[*at..=*at] == ":");
    (spaces && colons).then_some(())?;
    let month = MONTHS.iter().position(|name| *name == month)?;
    let day = match day.strip_prefix(' ') {
        Some(digit) => number(digit, 1, 9)?,
        None => number(day, 10, 31)?,
    };
    number(&text[11..13], 0, 23)?;
    number(&text[14..16], 0, 59)?;
    number(&text[17..19], 0, 60)?;
    let year = number(year, 1970, 9999)?;
    // Sakamoto's rule.
    let offsets = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
    let y = if month < 2 { year - 1 } else { year };
    let number = (y + y / 4 - y / 100 + y / 400 + offsets[month] + day) % 7;
    let names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    (names[number as usize] == weekday).then_some(())
}
