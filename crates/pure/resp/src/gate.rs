//! Whether a command may run, before it does.

use std::sync::Arc;

use crate::slots::Slots;
use crate::spec::{Rights, Spec};
use crate::{Arguments, Command, Drain, Failure, Id};

/// What the caller of a connection may do, and which keys are here.
#[derive(Clone, Default)]
pub struct Gate {
    pub rights: Rights,
    /// Which node has which slots; none outside of clusters, where every key is here.
    pub slots: Option<Arc<Slots>>,
}

impl Gate {
    /// A gate that lets everything through.
    pub fn open() -> Gate {
        Gate { rights: Rights::all(), slots: None }
    }

    /// The row of a command that may run. Refused are commands that do not exist or have the wrong
    /// number of arguments, that the caller lacks the scope for, or whose keys are elsewhere.
    pub fn admit(&self, command: &Command<'_>) -> Result<&'static Spec, Failure> {
        let spec = command.check()?;

        self.allow(spec)?;
        self.in_cluster(spec, command.arguments)?;
        if spec.id == Id::RainOnce {
            self.admit_inner(command)?;
        }

        Ok(spec)
    }

    /// Refuses the commands of a transaction if their keys are not all in one slot of this node.
    pub fn admit_together(&self, commands: &Drain) -> Result<(), Failure> {
        let known = commands
            .commands()
            .filter_map(|command| command.spec().map(|spec| (spec, command.arguments)));

        match &self.slots {
            Some(slots) => slots.check_all(known),
            None => Ok(()),
        }
    }

    /// Refuses a command that the caller lacks the scope for.
    pub fn allow(&self, spec: &'static Spec) -> Result<(), Failure> {
        let scope = spec.scope();
        if self.rights.has(scope) {
            return Ok(());
        }

        Err(Failure::owned(format!(
            "NOPERM this user has no permissions to run the '{}' command: it needs the scope {}",
            spec.name,
            scope.name()
        )))
    }

    /// The command that `RAIN.ONCE` runs is checked as if it came alone.
    fn admit_inner(&self, command: &Command<'_>) -> Result<(), Failure> {
        let inner = Command::of(command.arguments.from(2));
        let spec = inner.check()?;

        self.allow(spec)?;
        self.in_cluster(spec, inner.arguments)
    }

    fn in_cluster(&self, spec: &'static Spec, arguments: Arguments<'_>) -> Result<(), Failure> {
        let Some(slots) = &self.slots else { return Ok(()) };
        check_database(spec, arguments)?;
        slots.check(spec, arguments)
    }
}

/// A cluster has one database.
fn check_database(spec: &'static Spec, arguments: Arguments<'_>) -> Result<(), Failure> {
    // Without a number it is no option, and the command says so.
    let is_elsewhere =
        |at| arguments.is(at, "db") && arguments.get(at + 1).is_some_and(|db| db != b"0");
    if spec.id == Id::Copy && (3..arguments.len()).any(is_elsewhere) {
        let line = "ERR Copying to another database is not allowed in cluster mode";
        return Err(Failure::text(line));
    }

    let is_refused = match spec.id {
        Id::Select => arguments.get(1) != Some(b"0"),
        Id::Swapdb | Id::Move => true,
        _ => false,
    };
    if !is_refused {
        return Ok(());
    }

    let name = spec.name.to_ascii_uppercase();
    Err(Failure::owned(format!("ERR {name} is not allowed in cluster mode")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Scope;
    use crate::{SlotNode, Slots};

    fn refusal(gate: &Gate, words: &[&str]) -> Option<String> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let drain = Drain::of(&[&words]);

        gate.admit(&drain.get(0)).err().map(|failure| failure.to_string())
    }

    #[test]
    fn refusals_have_the_text_that_clients_compare_with() {
        let gate = Gate::open();
        let refused = |words: &[&str]| refusal(&gate, words).expect("a refusal");

        assert_eq!(refused(&["get"]), "ERR wrong number of arguments for 'get' command");
        assert_eq!(
            refused(&["object", "encoding"]),
            "ERR wrong number of arguments for 'object|encoding' command"
        );
        assert_eq!(refused(&["object"]), "ERR wrong number of arguments for 'object' command");
        assert_eq!(refused(&["OBJECT", "Foo"]), "ERR unknown subcommand 'Foo'. Try OBJECT HELP.");
        assert_eq!(
            refused(&["foo", "a", "b"]),
            "ERR unknown command 'foo', with args beginning with: 'a' 'b' "
        );
        assert_eq!(
            refused(&["xadd", "a"]),
            "ERR unknown command 'xadd', with args beginning with: 'a' \
             : raingauge has no streams"
        );
        assert!(refused(&["foo", &"x".repeat(500), "b"]).len() < 260);
    }

    #[test]
    fn a_caller_runs_what_its_scopes_allow() {
        let gate = Gate { rights: Rights::default().with(Scope::ObjectsRead), slots: None };

        assert_eq!(refusal(&gate, &["get", "k"]), None);
        assert_eq!(refusal(&gate, &["ping"]), None);
        assert_eq!(
            refusal(&gate, &["set", "k", "v"]).expect("a refusal"),
            "NOPERM this user has no permissions to run the 'set' command: \
             it needs the scope objects:write"
        );
        assert!(refusal(&gate, &["rain.count", "k", "1", "2"]).is_some());
        assert!(refusal(&gate, &["client", "kill", "id", "1"]).is_some());
    }

    #[test]
    fn a_cluster_has_one_database() {
        let node = SlotNode {
            id: "1".repeat(40),
            host: "127.0.0.1".into(),
            port: 7001,
            ranges: vec![(0, 16383)],
        };
        let slots = Slots::new(vec![node], 0).expect("every slot once");
        let gate = Gate { rights: Rights::all(), slots: Some(slots.into()) };

        assert_eq!(refusal(&gate, &["select", "0"]), None);
        assert_eq!(refusal(&gate, &["copy", "{a}1", "{a}2", "db", "0"]), None);
        for words in
            [&["select", "1"][..], &["move", "a", "1"], &["copy", "{a}1", "{a}2", "db", "1"]]
        {
            assert!(refusal(&gate, words).expect("a refusal").contains("cluster mode"));
            let once = [&["rain.once", "{a}id"], words].concat();
            assert!(refusal(&gate, &once).expect("a refusal").contains("cluster mode"), "{once:?}");
        }
        assert_eq!(refusal(&gate, &["copy", "{a}1", "{a}2", "db"]), None, "a syntax error later");
    }

    #[test]
    fn a_command_inside_another_is_checked_too() {
        let gate = Gate::open();

        assert_eq!(refusal(&gate, &["rain.once", "id", "incr", "k"]), None);
        assert!(refusal(&gate, &["rain.once", "id", "incr"]).is_some());
        assert!(refusal(&gate, &["rain.once", "id", "nope"]).is_some());
    }
}
