//! What the commands of a writer make of its database.

use rand::Rng;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The key of the number of the last command.
const NUMBER: &str = "number";
/// Fields and members, so that collections become wide.
const NAMES: u64 = 400;

/// A command, or several between MULTI and EXEC.
#[derive(Clone, Debug)]
pub enum Command {
    One(Vec<String>),
    Together(Vec<Vec<String>>),
}

impl Command {
    /// The words of all commands that are sent for it, with the one that notes its number.
    pub fn words(&self, number: u64) -> Vec<Vec<String>> {
        let mut all = match self {
            Self::One(words) => vec![words.clone()],
            Self::Together(parts) => {
                let inner = parts.iter().cloned();
                std::iter::once(words("MULTI")).chain(inner).chain([words("EXEC")]).collect()
            }
        };
        all.push(words(&format!("SET {NUMBER} {number}")));
        all
    }

    fn parts(&self) -> &[Vec<String>] {
        match self {
            Self::One(words) => std::slice::from_ref(words),
            Self::Together(parts) => parts,
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The command with a number.
pub fn command(random: &mut StdRng, number: u64) -> Command {
    if random.random_bool(0.15) {
        let len = random.random_range(2..6);
        return Command::Together((0..len).map(|part| one(random, number * 10 + part)).collect());
    }
    Command::One(one(random, number * 10))
}

/// A command that no type refuses: each type has keys of its own, and RENAME stays within them.
fn one(random: &mut StdRng, value: u64) -> Vec<String> {
    let name = random.random_range(0..NAMES);
    let key = random.random_range(0..3);
    let kind = ["text", "hash", "set", "sorted", "list"][random.random_range(0..5)];
    let long = "v".repeat(random.random_range(0..1_500));
    words(&match random.random_range(0..100) {
        0..15 => format!("SET text{key} {value}{long}"),
        15..22 => format!("APPEND text{key} {value}"),
        22..27 => format!("SET text{key} {value} EX 100000"),
        27..32 => "INCR count".to_owned(),
        32..46 => format!("HSET hash{key} f{name} {value}"),
        46..50 => format!("HDEL hash{key} f{name}"),
        50..60 => format!("SADD set{key} m{name}"),
        60..63 => format!("SREM set{key} m{name}"),
        63..74 => format!("ZADD sorted{key} {value} m{name}"),
        74..77 => format!("ZREM sorted{key} m{name}"),
        77..84 => format!("RPUSH list{key} {value}"),
        84..88 => format!("LPUSH list{key} {value}{long}"),
        88..91 => format!("LPOP list{key}"),
        91..95 => format!("DEL {kind}{key}"),
        95..97 => format!("COPY {kind}{key} {kind}3 REPLACE"),
        97..99 => format!("UNLINK {kind}3"),
        _ if random.random_bool(0.1) => "FLUSHDB".to_owned(),
        _ => format!("DEL {kind}0 {kind}1"),
    })
}

/// A database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model(BTreeMap<String, Value>);

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    Hash(BTreeMap<String, String>),
    Set(BTreeSet<String>),
    Sorted(BTreeMap<String, String>),
    List(VecDeque<String>),
}

impl Value {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Hash(fields) | Self::Sorted(fields) => fields.is_empty(),
            Self::Set(members) => members.is_empty(),
            Self::List(elements) => elements.is_empty(),
        }
    }
}

impl Model {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of the last command that was noted; 0 if none was.
    pub fn number(&self) -> u64 {
        match self.0.get(NUMBER) {
            Some(Value::Text(number)) => number.parse().expect("a number"),
            _ => 0,
        }
    }

    /// Puts a value as a server returns it.
    pub fn put(&mut self, key: &str, kind: &str, words: Vec<String>) {
        let pairs = || words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let value = match kind {
            "string" => Value::Text(words.concat()),
            "hash" => Value::Hash(pairs().collect()),
            "set" => Value::Set(words.into_iter().collect()),
            "zset" => Value::Sorted(pairs().collect()),
            _ => Value::List(words.into()),
        };
        self.0.insert(key.to_owned(), value);
    }

    /// Applies a command, and notes its number.
    pub fn apply(&mut self, command: &Command, number: Option<u64>) {
        for words in command.parts() {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.apply_one(&words);
        }
        if let Some(number) = number {
            self.0.insert(NUMBER.to_owned(), Value::Text(number.to_string()));
        }
    }

    fn apply_one(&mut self, words: &[&str]) {
        match words {
            ["SET", key, value, ..] => {
                self.0.insert((*key).to_owned(), Value::Text((*value).to_owned()));
            }
            ["APPEND", key, value] => self.change(key, Value::Text(String::new()), |text| {
                if let Value::Text(text) = text {
                    text.push_str(value);
                }
            }),
            ["INCR", key] => self.change(key, Value::Text("0".to_owned()), |text| {
                if let Value::Text(text) = text {
                    *text = (text.parse::<u64>().expect("a number") + 1).to_string();
                }
            }),
            ["FLUSHDB"] => self.0.clear(),
            ["DEL" | "UNLINK", keys @ ..] => keys.iter().for_each(|key| drop(self.0.remove(*key))),
            ["COPY", from, to, "REPLACE"] => {
                if let Some(value) = self.0.get(*from).cloned() {
                    self.0.insert((*to).to_owned(), value);
                }
            }
            _ => self.apply_to_collection(words),
        }
    }

    fn apply_to_collection(&mut self, words: &[&str]) {
        let text = |word: &str| word.to_owned();
        let key = words[1];
        let empty = match words[0] {
            "HSET" | "HDEL" => Value::Hash(BTreeMap::new()),
            "SADD" | "SREM" => Value::Set(BTreeSet::new()),
            "ZADD" | "ZREM" => Value::Sorted(BTreeMap::new()),
            _ => Value::List(VecDeque::new()),
        };
        self.change(key, empty, |value| match (value, words) {
            (Value::Hash(fields), ["HSET", _, field, value]) => {
                fields.insert(text(field), text(value));
            }
            (Value::Hash(fields), ["HDEL", _, field]) => drop(fields.remove(*field)),
            (Value::Set(members), ["SADD", _, member]) => drop(members.insert(text(member))),
            (Value::Set(members), ["SREM", _, member]) => drop(members.remove(*member)),
            (Value::Sorted(members), ["ZADD", _, score, member]) => {
                members.insert(text(member), text(score));
            }
            (Value::Sorted(members), ["ZREM", _, member]) => drop(members.remove(*member)),
            (Value::List(elements), ["RPUSH", _, element]) => elements.push_back(text(element)),
            (Value::List(elements), ["LPUSH", _, element]) => elements.push_front(text(element)),
            (Value::List(elements), ["LPOP", _]) => drop(elements.pop_front()),
            (value, words) => panic!("{words:?} is no command of {value:?}"),
        });
    }

    /// Changes a value, or an empty one. What is empty then is gone.
    fn change(&mut self, key: &str, empty: Value, change: impl FnOnce(&mut Value)) {
        let value = self.0.entry(key.to_owned()).or_insert(empty);
        change(value);
        if value.is_empty() {
            self.0.remove(key);
        }
    }
}
