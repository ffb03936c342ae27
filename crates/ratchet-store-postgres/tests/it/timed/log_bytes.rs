use ratchet_testdb::suite::{plain_jobs_cost_at_most, run};

use crate::database::PostgresServer;

#[test]
fn plain_jobs_cost_a_bounded_amount_of_log() {
    // 1,465 bytes were counted, and 65 statements: 4 submit, the others belong to turns.
    run(plain_jobs_cost_at_most::<PostgresServer>(1_500, 65));
}
