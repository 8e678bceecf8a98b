from concordance.adapters.postgres.database import Database


def test_a_cloned_database_has_the_schema(database: Database) -> None:
    with database.transaction() as connection:
        row = connection.execute("select count(*) from concordance.documents").fetchone()
    assert row == (0,)
