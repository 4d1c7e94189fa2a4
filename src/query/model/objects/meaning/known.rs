//! Known classes, and how their fields are read: JDK 6 to 25, and Android.

/// Method of reading the objects of a class and of its subclasses.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadMethod {
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
    /// A class object, including one of a primitive type.
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

/// Known classes, with the method of reading their objects.
pub(super) const KNOWN: &[(&str, ReadMethod)] = &[
    ("java.lang.String", ReadMethod::Text),
    ("java.lang.AbstractStringBuilder", ReadMethod::Text),
    ("java.lang.Class", ReadMethod::Class),
    ("java.lang.Thread", ReadMethod::Field("name")),
    ("java.lang.ThreadGroup", ReadMethod::Field("name")),
    ("java.lang.Enum", ReadMethod::Field("name")),
    ("java.lang.ClassLoader", ReadMethod::Loader),
    ("java.lang.Module", ReadMethod::Field("name")),
    ("java.lang.NamedPackage", ReadMethod::Field("name")),
    ("java.lang.Throwable", ReadMethod::Field("detailMessage")),
    ("java.lang.StackTraceElement", ReadMethod::Frame),
    ("java.lang.ref.Reference", ReadMethod::Referent),
    ("java.lang.reflect.Field", ReadMethod::Member("clazz", "name")),
    ("java.lang.reflect.Method", ReadMethod::Member("clazz", "name")),
    ("java.lang.reflect.Constructor", ReadMethod::Field("clazz")),
    ("java.lang.invoke.MemberName", ReadMethod::Member("clazz", "name")),
    ("java.lang.Boolean", ReadMethod::Number("value")),
    ("java.lang.Byte", ReadMethod::Number("value")),
    ("java.lang.Character", ReadMethod::Number("value")),
    ("java.lang.Double", ReadMethod::Number("value")),
    ("java.lang.Float", ReadMethod::Number("value")),
    ("java.lang.Integer", ReadMethod::Number("value")),
    ("java.lang.Long", ReadMethod::Number("value")),
    ("java.lang.Short", ReadMethod::Number("value")),
    ("java.math.BigInteger", ReadMethod::BigInteger),
    ("java.math.BigDecimal", ReadMethod::BigDecimal),
    ("java.util.Optional", ReadMethod::Holder("value", "empty")),
    ("java.util.OptionalInt", ReadMethod::OptionalNumber),
    ("java.util.OptionalLong", ReadMethod::OptionalNumber),
    ("java.util.OptionalDouble", ReadMethod::OptionalNumber),
    ("java.util.concurrent.atomic.AtomicBoolean", ReadMethod::Truth("value")),
    ("java.util.concurrent.atomic.AtomicInteger", ReadMethod::Number("value")),
    ("java.util.concurrent.atomic.AtomicLong", ReadMethod::Number("value")),
    ("java.util.concurrent.atomic.AtomicReference", ReadMethod::Holder("value", "null")),
    ("java.util.concurrent.atomic.LongAdder", ReadMethod::LongSum),
    ("java.util.concurrent.atomic.DoubleAdder", ReadMethod::DoubleSum),
    ("java.time.Instant", ReadMethod::Instant),
    ("java.time.Duration", ReadMethod::Duration),
    ("java.time.Period", ReadMethod::Period),
    ("java.time.LocalDate", ReadMethod::Date),
    ("java.time.LocalTime", ReadMethod::Time),
    ("java.time.LocalDateTime", ReadMethod::Joined(&[("", "date"), ("T", "time")])),
    ("java.time.OffsetDateTime", ReadMethod::Joined(&[("", "dateTime"), ("", "offset")])),
    ("java.time.OffsetTime", ReadMethod::Joined(&[("", "time"), ("", "offset")])),
    ("java.time.ZonedDateTime", ReadMethod::Zoned),
    ("java.time.Year", ReadMethod::Year),
    ("java.time.YearMonth", ReadMethod::YearMonth),
    ("java.time.MonthDay", ReadMethod::MonthDay),
    ("java.time.ZoneOffset", ReadMethod::Offset),
    ("java.time.ZoneRegion", ReadMethod::Field("id")),
    ("java.util.Date", ReadMethod::Millis("fastTime")),
    ("java.util.Calendar", ReadMethod::Millis("time")),
    ("java.sql.Timestamp", ReadMethod::Timestamp),
    ("java.io.File", ReadMethod::Field("path")),
    ("java.io.FileInputStream", ReadMethod::Field("path")),
    ("java.io.FileOutputStream", ReadMethod::Field("path")),
    ("java.io.RandomAccessFile", ReadMethod::Field("path")),
    ("sun.nio.fs.UnixPath", ReadMethod::Path),
    ("sun.nio.fs.WindowsPath", ReadMethod::Field("path")),
    ("java.net.Inet4Address", ReadMethod::Inet4),
    ("java.net.URI", ReadMethod::Uri),
    ("java.net.URL", ReadMethod::Url),
    ("java.nio.Buffer", ReadMethod::Buffer),
    ("java.nio.charset.Charset", ReadMethod::Field("name")),
    ("java.security.CodeSource", ReadMethod::Field("location")),
    ("java.security.ProtectionDomain", ReadMethod::Field("codesource")),
    ("java.security.Provider", ReadMethod::Field("name")),
    ("java.util.BitSet", ReadMethod::Bits),
    ("java.util.Currency", ReadMethod::Field("currencyCode")),
    ("java.util.Locale", ReadMethod::Locale),
    ("java.util.TimeZone", ReadMethod::Field("ID")),
    ("java.util.UUID", ReadMethod::Uuid),
    ("java.util.jar.Attributes$Name", ReadMethod::Field("name")),
    ("java.util.logging.Logger", ReadMethod::Field("name")),
    ("java.util.regex.Pattern", ReadMethod::Field("pattern")),
    ("java.util.zip.ZipEntry", ReadMethod::Field("name")),
    ("java.util.zip.ZipFile", ReadMethod::Field("name")),
    ("javax.management.ObjectName", ReadMethod::Field("_canonicalName")),
];
