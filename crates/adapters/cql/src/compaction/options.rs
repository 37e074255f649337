//! How nodes are asked to compact, and which tables.

use raingauge_settings::{Reader, settings, words};

/// Stands for the node's address in the command and in the URL.
pub const HOST: &str = "{host}";

settings! {
    /// How nodes are asked to compact.
    pub struct CompactionOptions in "maintenance" checked by CompactionOptions::check {
        /// How nodes are made to compact: nodetool for Cassandra, the REST interface for Scylla, or
        /// what suits the server.
        way as "compaction_way": CompactionWay = one_of(CompactionWay::WORDS);
        /// Command that reaches a node of Cassandra, words with spaces; {host} is the node's
        /// address, and what to do is appended.
        command_line as "compaction_command": String = text("nodetool -h {host} -p 7199");
        /// REST interface of a node of Scylla; {host} is the node's address.
        url as "compaction_url": String = text("http://{host}:10000");
        /// Tables that are compacted; auto leaves those with time windows to Cassandra, which would
        /// mix their windows.
        tables as "compaction_tables": CompactionTables = one_of(CompactionTables::WORDS);
    } with {
        /// The words of the command line. What it must do is appended: `compact KEYSPACE TABLE`,
        /// `compactionstats`, `stop -id ID`.
        command: Vec<String> = Vec::new();
    }
}

impl CompactionOptions {
    fn check(&mut self, _: &mut Reader) {
        self.command = self.command_line.split_whitespace().map(str::to_owned).collect();
    }
}

words! {
    pub enum CompactionWay {
        /// Depends on the server.
        Auto = "auto",
        Nodetool = "nodetool",
        Rest = "rest",
    }
}

words! {
    /// Which tables of the keyspace are compacted.
    pub enum CompactionTables {
        /// All tables on Scylla. On Cassandra those without time windows: a major compaction would
        /// merge all windows into one file, which could then not be dropped when its time is over.
        Auto = "auto",
        All = "all",
    }
}
