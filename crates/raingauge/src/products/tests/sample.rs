//! The product: it counts drops, shows them, and keeps umbrellas.

use crate::products::{Additions, Foundation, Opening, Product};
use axum::extract::{Extension, Query, State};
use maud::html;
use raingauge_app::Role as ProcessRole;
use raingauge_consumers::{Consumer, Error as ConsumerError, Runner};
use raingauge_core::access::{Role, Scope};
use raingauge_core::counter::Problem;
use raingauge_counters::difference::FieldChange;
use raingauge_counters::documents::{Document, DocumentKind, Error, Provenance};
use raingauge_http::{Operation, Routes};
use raingauge_people::Principal;
use raingauge_portal::{Needs, Pages, Place, Portal};
use raingauge_ports::BoxFuture;
use raingauge_ports::consumers::Change;
use raingauge_ports::log::Block;
use raingauge_ports::record::Entry;
use raingauge_settings::{Reader, settings};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

settings! {
    pub struct Sample in "sample" {
        /// Most drops that are shown.
        drops_max: u64 = whole(100, 1..=1_000, "drops");
    }
}

pub const PRODUCT: Product = Product { groups: &[Sample::GROUP], configure };

/// The record of the consumer.
const RECORD: &[u8] = b"drops";

fn configure(reader: &mut Reader) -> Opening {
    let settings = Sample::read(reader);
    Opening::new(settings, |settings, foundation| std::future::ready(open(&settings, &foundation)))
}

fn open(settings: &Sample, foundation: &Foundation) -> anyhow::Result<Additions> {
    let consumer = foundation.consumer("sample", 0)?;
    let (sender, counted) = watch::channel(stored(&consumer)?);
    let runner = Runner::start(consumer, move |consumer, blocks| {
        let drops = stored(consumer)? + drops_in(consumer, blocks)?;
        sender.send_replace(drops);
        let change: Change = (RECORD.to_vec(), Some(drops.to_be_bytes().to_vec()));
        Ok(vec![change])
    })?;

    let drops = Drops { counted, max: settings.drops_max };
    Ok(Additions {
        kinds: vec![Arc::new(Umbrellas::default())],
        consumers: vec![runner],
        routes: drops.routes(),
        pages: drops.pages(),
        ..Additions::default()
    })
}

fn stored(consumer: &Consumer) -> Result<u64, ConsumerError> {
    let record = consumer.records().get(consumer.name(), RECORD)?;
    Ok(record.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes"))))
}

fn drops_in(consumer: &Consumer, blocks: &[Block]) -> Result<u64, ConsumerError> {
    let mut drops = 0;
    for block in blocks {
        for entry in block.entries(consumer.position()) {
            let (_, entry) = entry?;
            drops += u64::from(matches!(entry, Entry::Event(event) if event.kind == "sample.drop"));
        }
    }
    Ok(drops)
}

/// The service of the product.
#[derive(Clone)]
struct Drops {
    counted: watch::Receiver<u64>,
    max: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DropsQuery {
    at_least: u64,
}

impl Drops {
    fn say(&self) -> String {
        format!("{} of {}", *self.counted.borrow(), self.max)
    }

    /// Waits until at least this number of drops is counted.
    async fn wait_for(mut self, at_least: u64) -> String {
        self.counted.wait_for(|drops| *drops >= at_least).await.expect("the consumer runs");
        self.say()
    }

    fn routes(&self) -> Routes {
        let drops = self.clone();
        let read = move |Query(query): Query<DropsQuery>| drops.clone().wait_for(query.at_least);
        let describe = || {
            Operation::new("sample", "readDrops", "How many drops have fallen")
                .answers_as::<String>(200, "text/plain", "The drops.", json!("3 of 5"))
        };
        Routes::of(ProcessRole::Reader).get("/v1/sample/drops", Scope::CountsRead, read, describe)
    }

    fn pages(&self) -> Pages {
        let drops = self.clone();
        let page = move |State(portal): State<Portal>, Extension(person): Extension<Principal>| {
            let body = html! { h1 { "Drops" } p { (drops.say()) " drops" } };
            let page = portal.page(Some(&person), Place::Product("/sample"), "Drops", &body);
            std::future::ready(page)
        };
        let pages = Pages::default().link("/sample", "Drops", Role::Editor);
        pages.get("/sample", Needs::Role(Role::Editor), page)
    }
}

/// A kind of document: umbrellas, by the order of their creation.
#[derive(Default)]
struct Umbrellas(Mutex<Vec<Document>>);

impl DocumentKind for Umbrellas {
    fn name(&self) -> &'static str {
        "umbrella"
    }

    fn reader(&self) -> Role {
        Role::Editor
    }

    fn check(&self, configuration: &Json) -> Result<Json, Error> {
        let has_color = configuration["color"].as_str().is_some_and(|color| !color.is_empty());
        let problem = || Error::Invalid(vec![Problem::new("color", "name a color")]);
        if has_color { Ok(configuration.clone()) } else { Err(problem()) }
    }

    fn read(&self, id: u64, _: Option<u32>) -> BoxFuture<'_, Result<Document, Error>> {
        let umbrellas = self.0.lock().unwrap();
        let found = umbrellas.iter().find(|umbrella| umbrella.id == id).cloned();
        let found = found.ok_or_else(|| Error::NotFound(format!("there is no umbrella {id}")));
        Box::pin(std::future::ready(found))
    }

    fn create<'a>(
        &'a self,
        configuration: &'a Json,
        provenance: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, Error>> {
        let mut umbrellas = self.0.lock().unwrap();
        let umbrella = Document {
            id: umbrellas.len() as u64 + 1,
            version: 1,
            configuration: configuration.clone(),
            changed_by: provenance.by.to_owned(),
            reason: provenance.reason.to_owned(),
        };
        umbrellas.push(umbrella.clone());
        Box::pin(std::future::ready(Ok(umbrella)))
    }

    fn replace<'a>(
        &'a self,
        _: &'a Json,
        _: u32,
        _: Provenance<'a>,
    ) -> BoxFuture<'a, Result<Document, Error>> {
        let refused = Error::Refused("an umbrella keeps its color".to_owned());
        Box::pin(std::future::ready(Err(refused)))
    }

    fn differences(&self, _: &Json, _: &Json) -> Vec<FieldChange> {
        Vec::new()
    }
}
