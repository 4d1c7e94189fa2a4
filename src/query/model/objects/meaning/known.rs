//! Known classes, and how their fields are read: JDK 6 to 25, and Android.

/// Method of reading the objects of a class and of its subclasses.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    /// The object in this field.
    Field(&'static str),
    /// The number or boolean in this field.
    Number(&'static str),
    /// The boolean that this field stores as a number.
    Truth(&'static str),
    /// The object in the first field; the second is the meaning of null.
    Holder(&'static str, &'static str),
    /// OptionalInt and similar classes: a number, if `isPresent`.
    OptionalNumber,
    /// java.lang.ClassLoader: its name, or its purpose according to its own fields.
    Loader,
    /// java.lang.String and its builders: characters in `value`.
    Text,
    /// A class object, also of a primitive type.
    Class,
    /// A member: the class in the first field, the name in the second.
    Member(&'static str, &'static str),
    /// java.net.URL.
    Url,
    /// java.net.URI.
    Uri,
    /// A path: bytes in `path`.
    Path,
    /// java.lang.StackTraceElement.
    Frame,
    /// java.util.UUID.
    Uuid,
    /// java.math.BigInteger.
    BigInteger,
    /// java.math.BigDecimal.
    BigDecimal,
    /// Milliseconds since 1970 in this field.
    Millis(&'static str),
    /// java.sql.Timestamp: a java.util.Date with `nanos`.
    Timestamp,
    /// java.time.Instant.
    Instant,
    /// java.time.Duration.
    Duration,
    /// java.time.Period.
    Period,
    /// java.time.LocalDate.
    Date,
    /// java.time.LocalTime.
    Time,
    /// java.time.Year.
    Year,
    /// java.time.YearMonth.
    YearMonth,
    /// java.time.MonthDay.
    MonthDay,
    /// java.time.ZoneOffset.
    Offset,
    /// Objects in consecutive fields, with texts before them.
    Joined(&'static [(&'static str, &'static str)]),
    /// java.time.ZonedDateTime.
    Zoned,
    /// java.util.concurrent.atomic.LongAdder: `base` and `cells`.
    LongSum,
    /// java.util.concurrent.atomic.DoubleAdder.
    DoubleSum,
    /// java.nio.Buffer.
    Buffer,
    /// java.util.Locale.
    Locale,
    /// java.util.BitSet.
    Bits,
    /// java.net.Inet4Address.
    Inet4,
    /// java.lang.ref.Reference: its referent. Has no label, since there are as many of them as referents.
    Referent,
}

/// Known classes.
pub(super) const KNOWN: &[(&str, How)] = &[
    ("java.lang.String", How::Text),
    ("java.lang.AbstractStringBuilder", How::Text),
    ("java.lang.Class", How::Class),
    ("java.lang.Thread", How::Field("name")),
    ("java.lang.ThreadGroup", How::Field("name")),
    ("java.lang.Enum", How::Field("name")),
    ("java.lang.ClassLoader", How::Loader),
    ("java.lang.Module", How::Field("name")),
    ("java.lang.NamedPackage", How::Field("name")),
    ("java.lang.Throwable", How::Field("detailMessage")),
    ("java.lang.StackTraceElement", How::Frame),
    ("java.lang.ref.Reference", How::Referent),
    ("java.lang.reflect.Field", How::Member("clazz", "name")),
    ("java.lang.reflect.Method", How::Member("clazz", "name")),
    ("java.lang.reflect.Constructor", How::Field("clazz")),
    ("java.lang.invoke.MemberName", How::Member("clazz", "name")),
    ("java.lang.Boolean", How::Number("value")),
    ("java.lang.Byte", How::Number("value")),
    ("java.lang.Character", How::Number("value")),
    ("java.lang.Double", How::Number("value")),
    ("java.lang.Float", How::Number("value")),
    ("java.lang.Integer", How::Number("value")),
    ("java.lang.Long", How::Number("value")),
    ("java.lang.Short", How::Number("value")),
    ("java.math.BigInteger", How::BigInteger),
    ("java.math.BigDecimal", How::BigDecimal),
    ("java.util.Optional", How::Holder("value", "empty")),
    ("java.util.OptionalInt", How::OptionalNumber),
    ("java.util.OptionalLong", How::OptionalNumber),
    ("java.util.OptionalDouble", How::OptionalNumber),
    ("java.util.concurrent.atomic.AtomicBoolean", How::Truth("value")),
    ("java.util.concurrent.atomic.AtomicInteger", How::Number("value")),
    ("java.util.concurrent.atomic.AtomicLong", How::Number("value")),
    ("java.util.concurrent.atomic.AtomicReference", How::Holder("value", "null")),
    ("java.util.concurrent.atomic.LongAdder", How::LongSum),
    ("java.util.concurrent.atomic.DoubleAdder", How::DoubleSum),
    ("java.time.Instant", How::Instant),
    ("java.time.Duration", How::Duration),
    ("java.time.Period", How::Period),
    ("java.time.LocalDate", How::Date),
    ("java.time.LocalTime", How::Time),
    ("java.time.LocalDateTime", How::Joined(&[("", "date"), ("T", "time")])),
    ("java.time.OffsetDateTime", How::Joined(&[("", "dateTime"), ("", "offset")])),
    ("java.time.OffsetTime", How::Joined(&[("", "time"), ("", "offset")])),
    ("java.time.ZonedDateTime", How::Zoned),
    ("java.time.Year", How::Year),
    ("java.time.YearMonth", How::YearMonth),
    ("java.time.MonthDay", How::MonthDay),
    ("java.time.ZoneOffset", How::Offset),
    ("java.time.ZoneRegion", How::Field("id")),
    ("java.util.Date", How::Millis("fastTime")),
    ("java.util.Calendar", How::Millis("time")),
    ("java.sql.Timestamp", How::Timestamp),
    ("java.io.File", How::Field("path")),
    ("java.io.FileInputStream", How::Field("path")),
    ("java.io.FileOutputStream", How::Field("path")),
    ("java.io.RandomAccessFile", How::Field("path")),
    ("sun.nio.fs.UnixPath", How::Path),
    ("sun.nio.fs.WindowsPath", How::Field("path")),
    ("java.net.Inet4Address", How::Inet4),
    ("java.net.URI", How::Uri),
    ("java.net.URL", How::Url),
    ("java.nio.Buffer", How::Buffer),
    ("java.nio.charset.Charset", How::Field("name")),
    ("java.security.CodeSource", How::Field("location")),
    ("java.security.ProtectionDomain", How::Field("codesource")),
    ("java.security.Provider", How::Field("name")),
    ("java.util.BitSet", How::Bits),
    ("java.util.Currency", How::Field("currencyCode")),
    ("java.util.Locale", How::Locale),
    ("java.util.TimeZone", How::Field("ID")),
    ("java.util.UUID", How::Uuid),
    ("java.util.jar.Attributes$Name", How::Field("name")),
    ("java.util.logging.Logger", How::Field("name")),
    ("java.util.regex.Pattern", How::Field("pattern")),
    ("java.util.zip.ZipEntry", How::Field("name")),
    ("java.util.zip.ZipFile", How::Field("name")),
    ("javax.management.ObjectName", How::Field("_canonicalName")),
];
