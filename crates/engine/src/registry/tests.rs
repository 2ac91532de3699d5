use super::*;
use crate::component::{Decision, DeployContext};
use crate::job::{Failure, Occasion};
use async_trait::async_trait;
use serde_json::json;

struct Part(&'static str, &'static [&'static str]);

#[async_trait]
impl Component for Part {
    fn name(&self) -> &str {
        self.0
    }

    fn depends_on(&self) -> Vec<String> {
        self.1.iter().map(|name| (*name).to_owned()).collect()
    }

    async fn decide(&self, _: &DeployContext) -> Result<Decision, Failure> {
        Ok(Decision::Unchanged(String::new()))
    }

    async fn deploy(&self, _: &DeployContext, _: Occasion) -> Result<(), Failure> {
        Ok(())
    }
}

fn pod(id: &str, when: When, after: &[&str]) -> PodJob {
    let after = after.iter().map(|name| (*name).to_owned()).collect();
    PodJob { after, ..PodJob::new(id, when, Retires::never("test"), json!({})) }
}

fn told(registry: &Registry) -> Vec<String> {
    registry.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn everything_that_cannot_work_is_told_at_once_and_by_name() {
    let mut registry = Registry::new();
    registry
        .component(Part("api", &["db"]))
        .component(Part("api", &[]))
        .component(Part("global", &[]))
        .component(Part("Web", &[]))
        .pod(pod("migrate", When::before("api"), &["nothing"]))
        .pod(pod("migrate", When::before("shop"), &[]))
        .pod(pod("late", When::after("api"), &["migrate"]))
        .pod(pod("no_id", When::before_all(), &[]));
    assert_eq!(
        told(&registry),
        [
            "there are two components `api`",
            "a component cannot be called `global`: that is what belongs to none",
            "`Web` cannot be a name: it takes lower-case letters, digits and dashes, up to 63",
            "component `api` depends on `db`, which is not there",
            "there are two jobs `migrate`",
            "job `migrate` belongs to component `shop`, which is not there",
            "`no_id` cannot be a name: it takes lower-case letters, digits and dashes, up to 63",
            "job `migrate` comes after `nothing`, which is not there",
            "job `late` comes after `migrate`, which belongs to the pre jobs of shop: only jobs of the post jobs of api can",
        ]
    );
}

#[test]
fn cycles_are_told_by_the_names_on_them() {
    let mut registry = Registry::new();
    registry.component(Part("a", &["b"])).component(Part("b", &["a"]));
    registry.pod(pod("x", When::before_all(), &["y"])).pod(pod("y", When::before_all(), &["x"]));
    assert_eq!(told(&registry), ["x → y → x wait for each other", "a → b → a wait for each other"]);
}

#[test]
fn a_registry_that_works_has_no_problems() {
    let mut registry = Registry::new();
    registry.component(Part("db", &[])).component(Part("api", &["db"]));
    registry.pod(pod("first", When::before("api"), &[])).pod(pod("second", When::before("api"), &["first"]));
    assert_eq!(told(&registry), [""; 0]);
}
