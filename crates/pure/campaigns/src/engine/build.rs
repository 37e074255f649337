//! Compiling documents: programs, shared tallies, and a bucket for each type of events.

use super::lookup::{field_of, lookup_name};
use super::waiting::{campaign_owner, waiting_owner};
use super::{
    Bucket, Cancelling, CompiledCap, CompiledLimit, Counting, Documents, Engine, Entry, Lookup,
    LookupRule, Program, Release, Source, TallyDefinition,
};
use crate::calendar::{Period, Zone};
use crate::campaign::{Campaign, Count, CountWindow, Place, ZoneSource, compiled_rule};
use crate::index::{Builder, Sight};
use crate::limits::KEPT_TIMES_MAX;
use crate::rule::{Leaf, Lhs, Rule};
use crate::states::owner;
use crate::tree::Tree;
use crate::window::Window;
use hashbrown::HashMap;
use raingauge_core::field::Field;
use raingauge_core::filter::Condition;
use raingauge_core::template::Template;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The rules of a campaign, before they are bound to the values of a type.
struct Rules {
    /// The rule of the campaign and the condition of a step together, by step.
    steps: Vec<Rule>,
    counts: BTreeMap<String, CompiledCount>,
    /// By step and action.
    cancels: Vec<Vec<Option<Rule>>>,
    rechecks: Vec<Vec<Option<Rule>>>,
}

enum CompiledCount {
    Tally { tally: usize, types: Vec<String>, filter: Rule },
    Counter { template: Template, length_ms: i64 },
}

impl Engine {
    /// Compiles documents that have been checked. A campaign that does not compile is left out.
    pub fn new(documents: Documents) -> Self {
        let Documents { mut campaigns, budgets, holdouts, caps, lookups, late_after_ms } =
            documents;
        campaigns.sort_by_key(|release| (Reverse(release.campaign.priority), release.campaign.id));

        let mut tallies = Tallies::default();
        let mut programs = Vec::new();
        let mut all_rules = Vec::new();
        for release in campaigns.into_iter().filter(|release| release.campaign.state.counts()) {
            if let Some((program, rules)) = compile(release, &lookups, &mut tallies) {
                programs.push(program);
                all_rules.push(rules);
            }
        }

        let types: BTreeSet<&String> = programs
            .iter()
            .zip(&all_rules)
            .flat_map(|(program, rules)| types_of(program, rules))
            .collect();
        let buckets = types
            .into_iter()
            .map(|kind| {
                let binder = Binder { kind, programs: &programs, lookups: &lookups };
                (kind.as_str().into(), binder.bucket(&all_rules))
            })
            .collect();

        let caps = caps.into_iter().map(|(name, cap)| {
            let zone = Zone::of_name(&cap.zone).unwrap_or_else(Zone::utc);
            let window = Window::Calendar { period: Period::Day, zone };
            CompiledCap { owner: owner(&["raingauge.cap.1", &name]), cap, window }
        });
        Self {
            buckets,
            caps: caps.collect(),
            tallies: tallies.definitions,
            programs,
            budgets,
            holdouts,
            late_after_ms,
        }
    }
}

fn types_of<'r>(program: &'r Program, rules: &'r Rules) -> impl Iterator<Item = &'r String> {
    let counted = rules.counts.values().flat_map(|count| match count {
        CompiledCount::Tally { types, .. } => types.as_slice(),
        CompiledCount::Counter { .. } => &[],
    });
    let cancelling = program
        .campaign
        .steps
        .iter()
        .flat_map(|step| &step.actions)
        .filter_map(|action| action.cancel.as_ref())
        .flat_map(|cancel| &cancel.event_types);
    program.campaign.event_types.iter().chain(counted).chain(cancelling)
}

/// Definitions of tallies, of which equal ones are one.
#[derive(Default)]
struct Tallies {
    definitions: Vec<TallyDefinition>,
    by_owner: HashMap<u128, usize>,
}

impl Tallies {
    fn number(&mut self, definition: TallyDefinition) -> usize {
        let known = *self.by_owner.entry(definition.owner).or_insert(self.definitions.len());
        if known == self.definitions.len() {
            self.definitions.push(definition);
        }
        known
    }
}

fn compile(
    release: Release,
    lookups: &BTreeMap<String, LookupRule>,
    tallies: &mut Tallies,
) -> Option<(Program, Rules)> {
    let Release { version, campaign, is_warming } = release;
    let zone = match ZoneSource::parse(&campaign.zone)? {
        ZoneSource::Fixed(zone) => zone,
        ZoneSource::Table { .. } => Zone::utc(),
    };

    let weights = |lhs: &Lhs| lookups.get(&lookup_name(lhs)?)?.weight;
    let rule_of = |condition: &Option<Condition>, name: &str, place: Place| -> Option<Rule> {
        let Some(condition) = condition else { return Some(Rule::always()) };
        let rule = compiled_rule(&campaign, condition, name, place, &weights).ok()?;
        Some(named(rule, name))
    };
    let rule = rule_of(&campaign.rule, "rule", Place::Trigger)?;
    let mut steps = Vec::new();
    let mut cancels = Vec::new();
    let mut rechecks = Vec::new();
    for step in &campaign.steps {
        let when = rule_of(&step.when, &step.name, Place::Trigger)?;
        steps.push(Rule::All(vec![rule.clone(), when]));

        let optional = |condition: Option<&Option<Condition>>, place| match condition {
            None => Some(None),
            Some(condition) => rule_of(condition, &step.name, place).map(Some),
        };
        let cancelled = step.actions.iter().map(|action| {
            optional(action.cancel.as_ref().map(|cancel| &cancel.rule), Place::Filter)
        });
        cancels.push(cancelled.collect::<Option<Vec<_>>>()?);
        let rechecked = step.actions.iter().map(|action| {
            optional(action.recheck.is_some().then_some(&action.recheck), Place::Recheck)
        });
        rechecks.push(rechecked.collect::<Option<Vec<_>>>()?);
    }

    let mut counts = BTreeMap::new();
    for (name, count) in &campaign.counts {
        let filter = rule_of(&count.filter, name, Place::Filter)?;
        counts.insert(name.clone(), compile_count(&campaign, count, filter, tallies)?);
    }

    let rules = Rules { steps, counts, cancels, rechecks };
    let program = Program {
        subject: field_of(&campaign.subject)?,
        limits: limits_of(&campaign, &zone)?,
        experiment: match &campaign.experiment {
            Some(experiment) => Some((unit_of(&campaign, &experiment.unit)?, experiment.split())),
            None => None,
        },
        cost_fields: cost_fields_of(&campaign),
        usage_owners: usage_owners_of(&campaign, &rules),
        decides: campaign.state.decides() && !is_warming,
        version,
        zone,
        campaign,
    };
    Some((program, rules))
}

/// Puts the name of the step in front of the text of each leaf.
fn named(rule: Rule, name: &str) -> Rule {
    let all = |rules: Vec<Rule>| rules.into_iter().map(|rule| named(rule, name)).collect();
    match rule {
        Rule::All(rules) => Rule::All(all(rules)),
        Rule::Any(rules) => Rule::Any(all(rules)),
        Rule::Leaf(leaf) => {
            let text = format!("{name}: {}", leaf.text).into();
            Rule::Leaf(Leaf { text, ..leaf })
        }
    }
}

/// Whom a limit or an experiment is about: `subject` is that of the campaign.
fn unit_of(campaign: &Campaign, path: &str) -> Option<Field> {
    field_of(if path == "subject" { &campaign.subject } else { path })
}

fn compile_count(
    campaign: &Campaign,
    count: &Count,
    filter: Rule,
    tallies: &mut Tallies,
) -> Option<CompiledCount> {
    let (from_ms, until_ms) = campaign.activity_ms();
    let window = match &count.window {
        CountWindow::Counter { template, last } => {
            let template = Template::parse(template).ok()?;
            return Some(CompiledCount::Counter { template, length_ms: last.ms() });
        }
        CountWindow::Campaign => Window::Campaign { from_ms, until_ms },
        CountWindow::Calendar(period) => {
            Window::Calendar { period: *period, zone: Zone::of_name(&campaign.zone)? }
        }
        // As many times whatever they are compared with: a number that is raised later, or that
        // another campaign shares, must not find too few.
        CountWindow::Last(last) => Window::last(last.ms(), KEPT_TIMES_MAX - 1)?,
    };

    let definition = TallyDefinition {
        owner: tally_owner(campaign, count)?,
        window,
        subject: field_of(&campaign.subject)?,
        value: count.value.clone(),
    };
    let types = counted_types(campaign, count);
    Some(CompiledCount::Tally { tally: tallies.number(definition), types, filter })
}

fn counted_types(campaign: &Campaign, count: &Count) -> Vec<String> {
    let named = [&count.event_types, &campaign.event_types];
    let mut types = named[usize::from(count.event_types.is_empty())].clone();
    types.sort();
    types.dedup();
    types
}

/// The owner of the states of a count, which equal counts of several campaigns share. `None` for a
/// counter of the service.
pub fn tally_owner(campaign: &Campaign, count: &Count) -> Option<u128> {
    let span = match &count.window {
        CountWindow::Counter { .. } => return None,
        CountWindow::Campaign => {
            let (from_ms, until_ms) = campaign.activity_ms();
            format!("campaign {from_ms} {until_ms}")
        }
        CountWindow::Calendar(period) => format!("{period:?} {}", campaign.zone),
        CountWindow::Last(last) => format!("last {}", last.ms()),
    };
    // Documents are plain data, whose JSON has one form.
    let types = counted_types(campaign, count);
    let json = serde_json::json!([types, count.filter, count.value]).to_string();
    Some(owner(&["raingauge.tally.1", &campaign.subject, &json, &span]))
}

fn limits_of(campaign: &Campaign, zone: &Zone) -> Option<Vec<CompiledLimit>> {
    let (from_ms, until_ms) = campaign.activity_ms();
    let limits = campaign.limits.iter().map(|limit| {
        let step = limit
            .step
            .as_ref()
            .map(|name| campaign.steps.iter().position(|step| step.name == *name));
        let period = serde_json::to_string(&limit.period).ok()?;
        let name = limit.step.as_deref().unwrap_or_default();
        Some(CompiledLimit {
            step: match step {
                None => None,
                Some(found) => Some(found?),
            },
            per: unit_of(campaign, &limit.per)?,
            owner: campaign_owner(campaign, "raingauge.limit.1", &[name, &limit.per, &period]),
            window: limit.window(from_ms, until_ms, zone),
        })
    });
    limits.collect()
}

fn cost_fields_of(campaign: &Campaign) -> Vec<Vec<Option<Field>>> {
    let fields = campaign.steps.iter().map(|step| {
        let of_action = |action: &crate::campaign::Action| {
            action.cost.as_ref().and_then(|cost| cost.amount.field()).and_then(field_of)
        };
        step.actions.iter().map(of_action).collect()
    });
    fields.collect()
}

/// Owners of the usage that any condition reads; no other usage is kept.
fn usage_owners_of(campaign: &Campaign, rules: &Rules) -> Vec<Option<u128>> {
    let mut read = BTreeSet::new();
    for rule in &rules.steps {
        rule.each_leaf(&mut |leaf| {
            if let Lhs::Usage(step) = &leaf.lhs {
                read.insert(&**step);
            }
        });
    }
    let owners = campaign.steps.iter().map(|step| {
        let name = step.name.as_str();
        read.contains(name).then(|| campaign_owner(campaign, "raingauge.usage.1", &[name]))
    });
    owners.collect()
}

/// Binds rules to the values of one type of events.
struct Binder<'b> {
    kind: &'b str,
    programs: &'b [Program],
    lookups: &'b BTreeMap<String, LookupRule>,
}

impl Binder<'_> {
    fn bucket(&self, all_rules: &[Rules]) -> Bucket {
        let mut bucket = Bucket::default();
        for (program, rules) in self.programs.iter().zip(all_rules) {
            self.collect(&mut bucket, program, rules);
        }

        let mut counting = Builder::default();
        let mut entries = Builder::default();
        let mut cancels = Builder::default();
        let mut counted = BTreeSet::new();
        for (number, rules) in all_rules.iter().enumerate() {
            for count in rules.counts.values() {
                let CompiledCount::Tally { tally, types, filter } = count else { continue };
                if types.iter().any(|kind| kind == self.kind) && counted.insert(*tally) {
                    let entry = self.entry(&bucket, number, 0, filter, rules);
                    add(&mut counting, bucket.counting.len(), filter, &entry);
                    bucket.counting.push(Counting { tally: *tally, filter: entry });
                }
            }
            self.add_cancels(&mut bucket, &mut cancels, number, rules);

            let program = &self.programs[number];
            let triggers = program.campaign.event_types.iter().any(|kind| kind == self.kind);
            if triggers && program.decides {
                for (step, rule) in rules.steps.iter().enumerate() {
                    let entry = self.entry(&bucket, number, step, rule, rules);
                    add(&mut entries, bucket.entries.len(), rule, &entry);
                    bucket.entries.push(entry);
                }
            }
        }
        for (number, rules) in all_rules.iter().enumerate() {
            self.add_rechecks(&mut bucket, number, rules);
        }

        bucket.counting_index = counting.build();
        bucket.entry_index = entries.build();
        bucket.cancel_index = cancels.build();
        bucket
    }

    fn add_cancels(&self, bucket: &mut Bucket, index: &mut Builder, number: usize, rules: &Rules) {
        let campaign = &self.programs[number].campaign;
        for (step, of_step) in campaign.steps.iter().zip(&rules.cancels) {
            for (action, rule) in step.actions.iter().zip(of_step) {
                let listens = action
                    .cancel
                    .as_ref()
                    .is_some_and(|cancel| cancel.event_types.iter().any(|kind| kind == self.kind));
                let Some(rule) = rule.as_ref().filter(|_| listens) else { continue };
                let entry = self.entry(bucket, number, 0, rule, rules);
                add(index, bucket.cancels.len(), rule, &entry);
                let owner = waiting_owner(campaign, &step.name, &action.name);
                bucket.cancels.push(Cancelling { owner, rule: entry });
            }
        }
    }

    fn add_rechecks(&self, bucket: &mut Bucket, number: usize, rules: &Rules) {
        for (step, of_step) in rules.rechecks.iter().enumerate() {
            for (action, rule) in of_step.iter().enumerate() {
                let Some(rule) = rule else { continue };
                let entry = self.entry(bucket, number, step, rule, rules);
                bucket.rechecks.insert((number, step, action), bucket.entries.len());
                bucket.entries.push(entry);
            }
        }
    }

    /// Notes the fields and local times that a campaign reads.
    fn collect(&self, bucket: &mut Bucket, program: &Program, rules: &Rules) {
        let mut fields = vec![program.subject.clone()];
        fields.extend(program.limits.iter().map(|limit| limit.per.clone()));
        fields.extend(program.experiment.iter().map(|(unit, _)| unit.clone()));
        fields.extend(program.cost_fields.iter().flatten().flatten().cloned());

        for count in rules.counts.values() {
            if let CompiledCount::Counter { template, .. } = count {
                fields.extend(template.fields().cloned());
            }
        }
        for count in program.campaign.counts.values() {
            if let raingauge_core::value::Value::Field(value) = &count.value {
                fields.extend(Field::of_path(&value.field));
            }
        }

        let filters = rules.counts.values().filter_map(|count| match count {
            CompiledCount::Tally { filter, .. } => Some(filter),
            CompiledCount::Counter { .. } => None,
        });
        let waiting = rules.cancels.iter().chain(&rules.rechecks).flatten().flatten();
        for rule in rules.steps.iter().chain(filters).chain(waiting) {
            rule.each_leaf(&mut |leaf| match &leaf.lhs {
                Lhs::Field(field) => fields.push(field.clone()),
                Lhs::Time(part) if self.zone_lookup(program).is_none() => {
                    let local = (program.zone.clone(), *part);
                    if !bucket.locals.contains(&local) {
                        bucket.locals.push(local);
                    }
                }
                lhs => fields.extend(self.lookup_of(program, lhs).map(|lookup| lookup.key)),
            });
        }
        for field in fields {
            if !bucket.fields.contains(&field) {
                bucket.fields.push(field);
            }
        }
    }

    fn zone_lookup(&self, program: &Program) -> Option<(Lookup, Box<str>)> {
        let lhs = Lhs::parse(&program.campaign.zone)?;
        let Lhs::Table { column, .. } = &lhs else { return None };
        Some((self.lookup_of(program, &lhs)?, column.clone()))
    }

    fn lookup_of(&self, program: &Program, lhs: &Lhs) -> Option<Lookup> {
        match lhs {
            Lhs::Time(_) => self.zone_lookup(program).map(|(lookup, _)| lookup),
            lhs => Lookup::of(lhs, self.lookups, &program.subject),
        }
    }

    fn entry(
        &self,
        bucket: &Bucket,
        number: usize,
        step: usize,
        rule: &Rule,
        rules: &Rules,
    ) -> Entry {
        let tree = Tree::new(rule);
        let program = &self.programs[number];
        let sources = tree
            .leaves()
            .iter()
            .map(|leaf| self.source(bucket, program, &leaf.lhs, rules))
            .collect();
        Entry { program: number, step, tree, sources }
    }

    fn source(&self, bucket: &Bucket, program: &Program, lhs: &Lhs, rules: &Rules) -> Source {
        let lookup = || self.lookup_of(program, lhs).expect("it is a lookup");
        match lhs {
            Lhs::Field(field) => Source::Slot(bucket.slot_of(field)),
            Lhs::Time(part) => match self.zone_lookup(program) {
                Some((lookup, column)) => Source::LocalTime { lookup, column, part: *part },
                None => {
                    let local = (program.zone.clone(), *part);
                    let place = bucket.locals.iter().position(|known| *known == local);
                    Source::Slot(bucket.fields.len() + place.expect("all times were collected"))
                }
            },
            Lhs::Count(name) => match &rules.counts[&**name] {
                CompiledCount::Tally { tally, .. } => Source::Tally(*tally),
                CompiledCount::Counter { template, length_ms } => {
                    Source::Counter { template: template.clone(), length_ms: *length_ms }
                }
            },
            Lhs::Usage(step) => {
                let owner = campaign_owner(&program.campaign, "raingauge.usage.1", &[step]);
                Source::Usage(owner)
            }
            Lhs::Segment(_) => Source::Lookup { lookup: lookup(), path: Box::default() },
            Lhs::Table { column, .. } | Lhs::Database { column, .. } => {
                Source::Lookup { lookup: lookup(), path: [column.clone()].into() }
            }
            Lhs::Http { path, .. } => {
                let path = path.split('.').map(Box::from).collect();
                Source::Lookup { lookup: lookup(), path }
            }
        }
    }
}

/// Adds a rule to an index. The tree orders its leaves differently; equal ones have one source.
fn add(index: &mut Builder, number: usize, rule: &Rule, entry: &Entry) {
    let sight = |leaf: &Leaf| {
        let place = entry.tree.leaves().iter().position(|known| known == leaf);
        match place.map(|place| &entry.sources[place]) {
            Some(Source::Slot(slot)) => Sight::Slot(*slot),
            Some(Source::Tally(tally)) => Sight::Count(*tally),
            _ => Sight::None,
        }
    };
    index.add(number as u32, rule, &sight);
}
