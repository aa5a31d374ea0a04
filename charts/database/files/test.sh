#!/bin/sh
# helm test: the owner can log in through the Service, write, and read. The read Service answers.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

: "${PGDATABASE:?}" "${READ_HOST:?}" "${READ_PORT:?}"
got=$(psql -X -A -t -q -w -v ON_ERROR_STOP=1 <<'SQL'
CREATE TEMPORARY TABLE helm_test AS SELECT 6 * 7 AS answer;
SELECT answer FROM helm_test;
SQL
)
[ "$got" = 42 ] || die "wrote 42 and read $got"
got=$(PGHOST=$READ_HOST PGPORT=$READ_PORT psql -X -A -t -q -w -c 'SELECT 42')
[ "$got" = 42 ] || die "expected 42 and read $got"
say "$PGDATABASE accepts writes and answers"
