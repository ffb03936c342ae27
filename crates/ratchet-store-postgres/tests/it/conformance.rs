ratchet_conformance::suite!(ratchet_testdb::suite::fixture::<super::database::TestDatabase>);
