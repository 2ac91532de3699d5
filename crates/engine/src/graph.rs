//! Things that come after other things: cycles among them, and doing them in order, several at a time.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

/// Something, and what it comes after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) after: Vec<String>,
}

/// Whether what comes after something may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Open,
    Blocked,
}

/// A cycle among names and the names that they come after: the names on it, the first one again at its end.
pub fn find_cycle_in(edges: &[(String, Vec<String>)]) -> Option<Vec<String>> {
    let node = |(name, after): &(String, Vec<String>)| Node { name: name.clone(), after: after.clone() };
    find_cycle(&edges.iter().map(node).collect::<Vec<_>>())
}

/// A cycle among the nodes, as the names on it, the first one again at its end.
pub(crate) fn find_cycle(nodes: &[Node]) -> Option<Vec<String>> {
    let edges: BTreeMap<&str, &[String]> =
        nodes.iter().map(|node| (node.name.as_str(), node.after.as_slice())).collect();
    let mut done = BTreeSet::new();
    for start in edges.keys() {
        let mut path: Vec<(&str, usize)> = vec![(start, 0)];
        while let Some((name, next)) = path.last_mut() {
            let name = *name;
            let target = edges.get(name).and_then(|after| after.get(*next));
            *next += 1;
            match target.and_then(|target| edges.get_key_value(target.as_str())) {
                Some((target, _)) if done.contains(target) => {}
                Some((target, _)) => match path.iter().position(|(on_path, _)| on_path == target) {
                    Some(position) => {
                        let cycle = path[position..].iter().map(|(name, _)| *name).chain([*target]);
                        return Some(cycle.map(str::to_owned).collect());
                    }
                    None => path.push((target, 0)),
                },
                None if target.is_some() => {}
                None => {
                    done.insert(name);
                    path.pop();
                }
            }
        }
    }
    None
}

/// Does all nodes in order, `limit` at a time, each as soon as what it comes after is through. Where something
/// is blocked, `skip` hears of what comes after it, with the name of what blocked it.
pub(crate) async fn walk<F>(nodes: &[Node], limit: usize, run: impl Fn(usize) -> F, skip: impl Fn(usize, &str))
where
    F: Future<Output = Flow>,
{
    let mut state: Vec<Option<Flow>> = vec![None; nodes.len()];
    let mut started = vec![false; nodes.len()];
    let mut running = FuturesUnordered::new();
    let position: BTreeMap<&str, usize> =
        nodes.iter().enumerate().map(|(index, node)| (node.name.as_str(), index)).collect();
    loop {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for index in 0..nodes.len() {
                if started[index] {
                    continue;
                }
                let before: Vec<usize> =
                    nodes[index].after.iter().filter_map(|name| position.get(name.as_str()).copied()).collect();
                if let Some(blocking) = before.iter().find(|before| state[**before] == Some(Flow::Blocked)) {
                    started[index] = true;
                    state[index] = Some(Flow::Blocked);
                    skip(index, &nodes[*blocking].name);
                    moved = true;
                } else if running.len() < limit.max(1) && before.iter().all(|before| state[*before].is_some()) {
                    started[index] = true;
                    let future = run(index);
                    running.push(async move { (index, future.await) });
                }
            }
        }
        match running.next().await {
            Some((index, flow)) => state[index] = Some(flow),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::time::Duration;

    fn nodes(edges: &[(&str, &[&str])]) -> Vec<Node> {
        let node = |(name, after): &(&str, &[&str])| Node {
            name: (*name).to_owned(),
            after: after.iter().map(|name| (*name).to_owned()).collect(),
        };
        edges.iter().map(node).collect()
    }

    #[test]
    fn a_cycle_is_told_by_the_names_on_it() {
        let cycle = find_cycle(&nodes(&[("x", &[]), ("a", &["x", "b"]), ("b", &["c"]), ("c", &["a"])]));
        assert_eq!(cycle.unwrap().join(" "), "a b c a");
        assert_eq!(find_cycle(&nodes(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &["unknown"])])), None);
        assert_eq!(find_cycle(&nodes(&[("a", &["a"])])).unwrap().join(" "), "a a");
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_are_done_in_order_and_not_too_many_at_once() {
        let nodes = nodes(&[("d", &["b", "c"]), ("a", &[]), ("b", &["a"]), ("c", &["a"]), ("e", &[])]);
        let (log, at_once) = (RefCell::new(Vec::new()), RefCell::new((0, 0)));
        let run = |index: usize| {
            let (log, at_once, name) = (&log, &at_once, nodes[index].name.clone());
            async move {
                {
                    let mut now = at_once.borrow_mut();
                    now.0 += 1;
                    now.1 = now.1.max(now.0);
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
                at_once.borrow_mut().0 -= 1;
                log.borrow_mut().push(name);
                Flow::Open
            }
        };
        walk(&nodes, 2, run, |_, _| {}).await;
        let order = log.into_inner();
        let place = |name: &str| order.iter().position(|other| other == name).unwrap();
        assert!(place("a") < place("b") && place("b") < place("d") && place("c") < place("d"), "{order:?}");
        assert_eq!((order.len(), at_once.into_inner().1), (5, 2));
    }

    #[tokio::test]
    async fn what_comes_after_something_blocked_is_skipped_with_its_name() {
        let nodes = nodes(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &[])]);
        let (ran, skipped) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let run = |index: usize| {
            ran.borrow_mut().push(nodes[index].name.clone());
            std::future::ready(if index == 0 { Flow::Blocked } else { Flow::Open })
        };
        let skip = |index: usize, by: &str| skipped.borrow_mut().push(format!("{} by {by}", nodes[index].name));
        walk(&nodes, 4, run, skip).await;
        assert_eq!(ran.into_inner(), ["a", "d"]);
        assert_eq!(skipped.into_inner(), ["b by a", "c by b"]);
    }
}
