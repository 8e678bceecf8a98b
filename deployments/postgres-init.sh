#!/bin/sh
# Run once by the image, with an empty data folder: a login and a database for each program.
set -eu
psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres \
    --set=concordance="$CONCORDANCE_PASSWORD" --set=prefect="$PREFECT_PASSWORD" <<'SQL'
create role concordance login password :'concordance';
create database concordance owner concordance;
create role prefect login password :'prefect';
create database prefect owner prefect;
\connect concordance
create extension vector;
\connect prefect
create extension pg_trgm;
SQL
