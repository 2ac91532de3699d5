//! What somebody does who tries everything.

use crate::fuzz::request::{Asked, Pipe, accept, anything, collection, gadgets, query, question, subresource, write};
use crate::fuzz::tape::Tape;
use crate::fuzz::value::mutate;
use crate::fuzz::vocabulary::NAMESPACES;
use crate::fuzz::world::{World, panics};
use crate::fuzz::{definitions, patches, typed};
use serde_json::{Value, json};
use std::time::Duration;

/// Plays a session from choices.
pub fn play(choices: Vec<u16>) {
    let before = panics();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut tape = Tape::new(choices);
        let mut world = World::new();
        world.furnish().await;
        while !tape.is_used_up() {
            act(&mut tape, &mut world).await;
        }
        world.goes_on().await;
    });
    assert_eq!(panics(), before, "something panicked where nobody looked");
}

async fn act(tape: &mut Tape, world: &mut World) {
    match tape.below(16) {
        0..3 => create(tape, world).await,
        3..5 => change(tape, world).await,
        5..9 => patch(tape, world).await,
        9 => delete(tape, world).await,
        10 => read(tape, world).await,
        11 => define(tape, world).await,
        12 => outage(tape, world),
        13 => wait(tape, world).await,
        _ => {
            let asked = anything(tape, &world.tokens);
            world.ask(&asked).await;
        }
    }
}

async fn create(tape: &mut Tape, world: &mut World) {
    let kind = typed::kind(tape);
    let object = typed::object(tape, kind);
    let namespace = *tape.choose(&NAMESPACES[..3]);
    let uri = collection(kind, namespace);
    let (content_type, body) = write(tape, &object);
    let uri = if tape.once_in(5) { uri + &query(tape, &world.tokens) } else { uri };
    world.ask(&Asked { method: "POST".to_owned(), uri, content_type, accept: accept(tape), body }).await;
}

/// Some object that is there, and where.
async fn some(tape: &mut Tape, world: &mut World) -> Option<(String, Value)> {
    let uri = tape.choose(&world.places).clone();
    let found = world.get(&uri).await;
    (found.code == 200).then(|| (uri, found.json()))
}

async fn change(tape: &mut Tape, world: &mut World) {
    let Some((mut uri, mut object)) = some(tape, world).await else { return };
    mutate(tape, &mut object);
    let mut method = "PUT";
    if tape.once_in(2) {
        let below = subresource(tape);
        object = question(tape, below, &object);
        uri = format!("{uri}/{below}");
        method = if matches!(below, "binding" | "eviction" | "token") { "POST" } else { "PUT" };
    }
    let uri = if tape.once_in(5) { uri + &query(tape, &world.tokens) } else { uri };
    let (content_type, body) = write(tape, &object);
    world.ask(&Asked { method: method.to_owned(), uri, content_type, accept: accept(tape), body }).await;
}

async fn patch(tape: &mut Tape, world: &mut World) {
    let Some((mut uri, object)) = some(tape, world).await else { return };
    if tape.once_in(4) {
        uri = format!("{uri}/{}", subresource(tape));
    }
    let content_type = *tape.choose(patches::TYPES);
    let patch = patches::patch(tape, content_type, &object);
    uri += if content_type.contains("apply") { "?fieldManager=me&force=true" } else { "" };
    if tape.once_in(5) {
        uri = uri.split('?').next().unwrap_or_default().to_owned() + &query(tape, &world.tokens);
    }
    let body = patch.to_string().into_bytes();
    world
        .ask(&Asked {
            method: "PATCH".to_owned(),
            uri,
            content_type: content_type.to_owned(),
            accept: accept(tape),
            body,
        })
        .await;
}

async fn delete(tape: &mut Tape, world: &mut World) {
    let Some((mut uri, _)) = some(tape, world).await else { return };
    if tape.once_in(6) {
        uri = uri.rsplit_once('/').map(|(collection, _)| collection.to_owned()).unwrap_or(uri);
    }
    let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1",
        "propagationPolicy": tape.choose(&["Background", "Foreground", "Orphan"])});
    if tape.once_in(3) {
        options["gracePeriodSeconds"] = crate::fuzz::vocabulary::integer(tape).into();
        mutate(tape, &mut options);
    }
    let (content_type, body) = write(tape, &options);
    let uri = uri + &query(tape, &world.tokens);
    world.ask(&Asked { method: "DELETE".to_owned(), uri, content_type, accept: accept(tape), body }).await;
}

async fn read(tape: &mut Tape, world: &mut World) {
    let namespace = *tape.choose(NAMESPACES);
    let mut uri = if tape.once_in(6) { gadgets(tape, namespace) } else { collection(typed::kind(tape), namespace) };
    if tape.once_in(3) {
        uri = crate::fuzz::request::path(tape);
    }
    let uri = uri + &query(tape, &world.tokens);
    world.ask(&Asked { method: "GET".to_owned(), uri, accept: accept(tape), ..Asked::default() }).await;
}

async fn define(tape: &mut Tape, world: &mut World) {
    let (uri, object) = if tape.once_in(2) {
        let namespace = *tape.choose(&NAMESPACES[..1]);
        (gadgets(tape, namespace), definitions::gadget(tape))
    } else {
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(), definitions::definition(tape))
    };
    world.post(&uri, &object).await.pipe(drop);
}

fn outage(tape: &mut Tape, world: &mut World) {
    let node = *tape.choose(&["drydock", "drydock-2", "nobody"]);
    let lost = tape.once_in(2);
    world.note(format!("lose {node}: {lost}"));
    if lost { world.drydock.lose_node(node) } else { world.drydock.restore_node(node) }.pipe(drop);
    if tape.once_in(4) {
        world.drydock.compact();
    }
}

async fn wait(tape: &mut Tape, world: &mut World) {
    let milliseconds = *tape.choose(&[1, 20, 1_000, 5_000, 30_000, 60_000, 600_000]);
    world.note(format!("wait {milliseconds} ms"));
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}
