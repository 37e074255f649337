//! Examples of a programme: a programme whose own examples do not come out cannot be saved.

use crate::document::{ExampleDocument, ProgrammeDocument};
use crate::pricing::Facts;
use crate::programme::Programme;
use raingauge_core::counter::Problem;

pub(super) fn problems(document: &ProgrammeDocument, programme: &Programme) -> Vec<Problem> {
    let at = |number: usize| format!("examples[{number}]");
    let checked = document.examples.iter().enumerate();
    checked
        .filter_map(|(number, example)| {
            let problem = problem(example, programme).err()?;
            Some(Problem::new(at(number), problem))
        })
        .collect()
}

fn problem(example: &ExampleDocument, programme: &Programme) -> Result<(), String> {
    if !example.data.is_object() {
        return Err("data must be an object".to_owned());
    }
    if example.tier.as_deref().is_some_and(|tier| !programme.has_tier(tier)) {
        return Err("tier is none of the tiers".to_owned());
    }

    let data = example.data.to_string();
    let facts = Facts { event_type: None, data: &data };
    let priced = programme
        .price_facts(None, example.rule, None, Some(&facts), &[])
        .map_err(|refusal| refusal.detail)?;
    let lowest = programme.tier_of(None).map(|tier| &**tier);
    let tier = example.tier.as_deref().or(lowest);
    let product = programme.product(&priced, tier).map_err(|refusal| refusal.detail)?;

    let expected = programme.points_of(&example.points).map_err(|refusal| refusal.detail)?;
    if product.points == expected {
        return Ok(());
    }
    let explained = crate::explain::of_product(&product, programme);
    Err(format!("must give {} points, and gives {explained}", example.points))
}
