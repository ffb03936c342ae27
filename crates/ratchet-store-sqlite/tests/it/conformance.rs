use ratchet_conformance::Fixture;

async fn fresh() -> Fixture {
    let (store, dir) = super::fresh().await;
    Fixture::new(store, dir)
}

ratchet_conformance::suite!(fresh);
