//! Rules files that are compiled in.

/// Name and text of each file.
pub(super) const BUNDLED: &[(&str, &str)] = &[
    ("activemq.toml", include_str!("rules/activemq.toml")),
    ("caffeine.toml", include_str!("rules/caffeine.toml")),
    ("compilers.toml", include_str!("rules/compilers.toml")),
    ("coroutines.toml", include_str!("rules/coroutines.toml")),
    ("databases.toml", include_str!("rules/databases.toml")),
    ("documents.toml", include_str!("rules/documents.toml")),
    ("eclipselink.toml", include_str!("rules/eclipselink.toml")),
    ("ehcache.toml", include_str!("rules/ehcache.toml")),
    ("executors.toml", include_str!("rules/executors.toml")),
    ("groovy.toml", include_str!("rules/groovy.toml")),
    ("guava.toml", include_str!("rules/guava.toml")),
    ("hibernate.toml", include_str!("rules/hibernate.toml")),
    ("hikari.toml", include_str!("rules/hikari.toml")),
    ("jetty.toml", include_str!("rules/jetty.toml")),
    ("kafka.toml", include_str!("rules/kafka.toml")),
    ("logging.toml", include_str!("rules/logging.toml")),
    ("lucene.toml", include_str!("rules/lucene.toml")),
    ("netty.toml", include_str!("rules/netty.toml")),
    ("pools.toml", include_str!("rules/pools.toml")),
    ("quartz.toml", include_str!("rules/quartz.toml")),
    ("spark.toml", include_str!("rules/spark.toml")),
    ("spring.toml", include_str!("rules/spring.toml")),
    ("tomcat.toml", include_str!("rules/tomcat.toml")),
];
