//! The settings that the engines declare, for the composition of the configuration.

pub use raingauge_embedded::{LogOptions, TileOptions};
pub use raingauge_sql::DatabaseSettings;

#[cfg(feature = "cluster")]
pub use {
    raingauge_cql::{CompactionOptions, Settings as CqlSettings},
    raingauge_kafka::Settings as KafkaSettings,
    raingauge_redis::Settings as RedisSettings,
    raingauge_sql::MySqlSettings,
};
