use super::*;
use jobwright_drydock::{Drydock, Fault, Faults};
use k8s_openapi::api::core::v1::Namespace;
use kube::Resource as _;
use kube::api::DeleteParams;
use serde_json::json;

/// A cluster in memory, with a namespace for a release, and something there that owns it.
struct Lab {
    drydock: Drydock,
    faults: Faults,
    owner: Owner,
}

impl Lab {
    async fn new() -> Self {
        let mut lab = Self { drydock: Drydock::new(), faults: Faults::new(0), owner: owner() };
        let named = json!({"metadata": {"name": "shop"}});
        let namespace = serde_json::from_value(named.clone()).unwrap();
        Api::<Namespace>::all(lab.client()).create(&PostParams::default(), &namespace).await.unwrap();
        let map = serde_json::from_value(named).unwrap();
        let map = lab.maps().create(&PostParams::default(), &map).await.unwrap();
        lab.owner.reference = map.owner_ref(&());
        lab
    }

    fn client(&self) -> Client {
        Client::new(self.faults.around(self.drydock.clone()), "default")
    }

    fn retry(&self) -> Retry {
        let drydock = self.drydock.clone();
        let clock = crate::Clock::new(move || drydock.now());
        Retry::new(clock, tokio_util::sync::CancellationToken::new(), crate::Events::nowhere())
    }

    async fn open(&self, fence: Option<Fence>) -> Result<Books, Error> {
        Books::open(self.client(), self.owner.clone(), fence, self.retry()).await
    }

    /// The ledger of `migrate`, read now by a holder.
    async fn book(&self, epoch: u64) -> Result<Book, Error> {
        migrate(&self.open(Some(fence("lease", epoch))).await?)
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client(), "shop")
    }
}

fn fence(lease: &str, epoch: u64) -> Fence {
    Fence { lease: lease.to_owned(), epoch }
}

fn owner() -> Owner {
    Owner {
        namespace: "shop".to_owned(),
        identity: "shop".to_owned(),
        base: "shop".to_owned(),
        labels: BTreeMap::from([
            (names::RELEASE.to_owned(), "shop".to_owned()),
            (MANAGED_BY.to_owned(), "jobwright".to_owned()),
        ]),
        reference: None,
    }
}

fn migrate(books: &Books) -> Result<Book, Error> {
    books.book("migrate", BTreeMap::from([(names::PHASE.to_owned(), "pre".to_owned())]))
}

/// A ledger that has come to this run.
fn at_run(next: u64) -> Ledger {
    let mut ledger = Ledger::default();
    ledger.head.next = next;
    ledger
}

#[tokio::test(start_paused = true)]
async fn a_ledger_says_whose_it_is_and_goes_with_it() {
    let lab = Lab::new().await;
    let mut book = lab.book(3).await.unwrap();
    assert_eq!(book.uid(), "");
    assert_eq!(book.write(at_run(7)).await.unwrap(), Written::Yes);
    let stored = lab.maps().get(&lab.owner.ledger_name("migrate")).await.unwrap();
    assert!(stored.name_any().starts_with("jobwright-shop-migrate-"), "{}", stored.name_any());
    let labels = [
        (MANAGED_BY, "jobwright"),
        (names::JOB, "migrate"),
        (LEDGER, "1"),
        (names::PHASE, "pre"),
        (names::RELEASE, "shop"),
    ];
    assert_eq!(*stored.labels(), labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    assert_eq!(stored.owner_references(), [lab.owner.reference.clone().unwrap()]);
    let managers: Vec<_> = stored.managed_fields().iter().filter_map(|entry| entry.manager.as_deref()).collect();
    assert_eq!(managers, [FIELD_MANAGER]);
    assert_eq!(stored.uid().unwrap(), book.uid());
    assert_eq!((book.ledger().head.next, book.ledger().head.fence.clone()), (7, Some(fence("lease", 3))));
    assert_eq!(decode(&stored).unwrap(), *book.ledger());
}

#[tokio::test(start_paused = true)]
async fn of_two_that_have_read_the_same_only_one_writes() {
    let lab = Lab::new().await;
    let (mut first, mut second) = (lab.book(1).await.unwrap(), lab.book(1).await.unwrap());
    for next in [2, 4] {
        assert_eq!(first.write(at_run(next)).await.unwrap(), Written::Yes);
        assert_eq!(second.write(at_run(9)).await.unwrap(), Written::ReadAgain);
        assert_eq!(second.ledger().head.next, next);
    }
    assert_eq!(second.write(at_run(5)).await.unwrap(), Written::Yes);
    assert_eq!(lab.book(1).await.unwrap().ledger().head.next, 5);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_lost_the_lease_neither_writes_nor_begins() {
    let lab = Lab::new().await;
    let mut paused = lab.book(2).await.unwrap();
    let mut holder = lab.book(3).await.unwrap();
    assert_eq!(holder.write(at_run(2)).await.unwrap(), Written::Yes);
    let refused = paused.write(at_run(9)).await.unwrap_err();
    assert!(matches!(&refused, Error::LostLease { name } if name.starts_with("jobwright-shop-migrate-")), "{refused}");
    assert!(matches!(lab.book(2).await, Err(Error::LostLease { .. })));
    for without_a_conflict in [3, 4] {
        assert_eq!(lab.book(without_a_conflict).await.unwrap().ledger().head.next, 2, "{without_a_conflict}");
    }
    assert_eq!(lab.open(None).await.unwrap().snapshot().into_keys().collect::<Vec<_>>(), ["migrate"]);
}

#[tokio::test(start_paused = true)]
async fn a_ledger_of_an_earlier_lease_is_taken_over_and_one_of_a_later_lease_is_not() {
    let lab = Lab::new().await;
    lab.book(7).await.unwrap().write(at_run(2)).await.unwrap();
    let books = lab.open(Some(fence("second", 1))).await.unwrap();
    assert!(books.other_fence().is_some());
    let mut second = migrate(&books).unwrap();
    let mut third = migrate(&lab.open(Some(fence("third", 1))).await.unwrap()).unwrap();
    assert_eq!(third.write(at_run(3)).await.unwrap(), Written::Yes);
    assert!(matches!(second.write(at_run(4)).await, Err(Error::LostLease { .. })));
    assert!(lab.open(Some(fence("third", 1))).await.unwrap().other_fence().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_keeps_failing_ends_after_five_minutes() {
    for fault in [Fault::Internal, Fault::Conflict, Fault::Unavailable, Fault::TooManyRequests { retry_after: 1 }] {
        let lab = Lab::new().await;
        let mut book = lab.book(1).await.unwrap();
        lab.faults.on(|call| call.verb == "create").fail(fault.clone());
        let begun = lab.drydock.now();
        let error = loop {
            match book.write(at_run(2)).await {
                Ok(Written::ReadAgain) => {}
                Ok(Written::Yes) => panic!("{fault:?}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.starts_with("cannot write ledger `jobwright-shop-migrate-"), "{error}");
        let waited = lab.drydock.now().duration_since(begun);
        assert!((300..=310).contains(&waited.as_secs()), "{fault:?}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_is_too_large_is_written_without_its_logs() {
    let lab = Lab::new().await;
    let mut book = lab.book(1).await.unwrap();
    let mut large = at_run(2);
    large.logs.insert("1".to_owned(), "x".repeat(2 * 1024 * 1024));
    assert_eq!(book.write(large).await.unwrap(), Written::Yes);
    assert_eq!((book.ledger().head.next, book.ledger().logs.len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_ledger_starts_over() {
    let lab = Lab::new().await;
    let mut book = lab.book(1).await.unwrap();
    book.write(at_run(4)).await.unwrap();
    lab.maps().delete(&book.name, &DeleteParams::default()).await.unwrap();
    assert_eq!(book.write(at_run(5)).await.unwrap(), Written::ReadAgain);
    assert_eq!((book.uid(), book.ledger()), (String::new(), &Ledger::default()));
}

#[tokio::test(start_paused = true)]
async fn without_its_namespace_a_ledger_is_refused() {
    let lab = Lab::new().await;
    let nowhere = Owner { namespace: "nowhere".to_owned(), ..owner() };
    let books = Books::open(lab.client(), nowhere, None, lab.retry()).await.unwrap();
    let refused = migrate(&books).unwrap().write(at_run(2)).await.unwrap_err().whole_message();
    assert!(refused.starts_with("cannot write ledger `jobwright-shop-migrate-"), "{refused}");
    assert!(refused.ends_with("namespaces \"nowhere\" not found"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn readers_get_the_ledgers_of_a_release_whoever_manages_it() {
    let lab = Lab::new().await;
    lab.book(1).await.unwrap().write(at_run(6)).await.unwrap();
    let of = async |key: &str, value: &str| {
        let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        read_ledgers(&lab.client(), "shop", &labels, &lab.retry()).await.unwrap()
    };
    assert!(of(names::RELEASE, "other").await.is_empty());
    for (key, value) in [(names::RELEASE, "shop"), (MANAGED_BY, "somebody")] {
        let found = of(key, value).await;
        let [(labels, ledger)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(labels[names::JOB], "migrate");
        assert_eq!(ledger.as_ref().unwrap().head.next, 6);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_keeps_failing_ends_after_five_minutes() {
    for fault in [Fault::Internal, Fault::Conflict] {
        let lab = Lab::new().await;
        lab.faults.on(|call| call.verb == "list").times(3).fail(fault.clone());
        assert!(lab.open(None).await.is_ok(), "{fault:?}");
        lab.faults.on(|call| call.verb == "list").fail(fault.clone());
        let begun = lab.drydock.now();
        let gave_up = lab.open(None).await.map(drop).unwrap_err().to_string();
        assert_eq!(gave_up, "cannot list the ledgers in namespace `shop`, retried for 5m");
        let waited = lab.drydock.now().duration_since(begun);
        assert!((300..=310).contains(&waited.as_secs()), "{fault:?}: {waited:?}");
    }
}
