#!/bin/sh
# Checks, before an upgrade to another image, that its programs can read the existing data. Changes nothing. If the
# image cannot be pulled, the check fails and the pods keep running. With an argument:
#   answers    before a snapshot: checks that a server answers
#   rollback   before a rollback: also makes the pod PRIMARY the primary, as it was in that revision
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

own=$(major_of pg_dump)
if [ "${1:-}" = rollback ]; then
  # The other image may have no programs for the data, so check first.
  sh "$0"
  exec sh "$(dirname "$0")/switch.sh" rollback
fi
if ! server=$(server_major); then
  [ "${1:-}" != answers ] || die "$PGHOST does not answer, so there can be no snapshot. The value snapshotOnDelete requests it"
  say "$PGHOST does not answer, so its version is unknown; data of another major version will be left as it is"
  exit 0
fi
if [ "${1:-}" = answers ]; then
  say "PostgreSQL $server answers"
  exit 0
fi
if [ "$server" = "$own" ]; then
  say "the data and the image are of PostgreSQL $own: nothing to do"
  exit 0
fi
case $(mark restore) in
  '' | restored* | done) ;;
  *)
    # prepare.sh kept the previous data and can restore it.
    if [ "$own" -lt "$server" ]; then
      say "the upgrade to PostgreSQL $server is not finished: going back"
      exit 0
    fi
    die "the upgrade to PostgreSQL $server is not finished: wait for it, or go back, before PostgreSQL $own"
    ;;
esac
if [ "$own" -lt "$server" ]; then
  die "the data is of PostgreSQL $server, and PostgreSQL $own cannot read it: restore a backup into another database"
fi
if [ "${MAJOR_UPGRADE:-}" != DumpAndRestore ]; then
  die "the data is of PostgreSQL $server, and the image is of PostgreSQL $own: majorUpgrade is ${MAJOR_UPGRADE:-not set}"
fi
check_connections
# If the server has a newer patch release than the image, its columns can have an option that pg_dump of the image
# copies and the server of the image rejects: the restore would fail.
databases=$(query -c 'SELECT datname FROM pg_database WHERE datallowconn ORDER BY oid')
while IFS= read -r database; do
  if PGDATABASE=$database pg_dump -w --schema-only --lock-wait-timeout=10s | grep '^ALTER TABLE .* SET (.*pg_attver=' > /dev/null; then
    die "the server has a newer patch release than the image, whose PostgreSQL $own does not support the column option pg_attver: use the newest patch release of PostgreSQL $own"
  fi
done << EOF
$databases
EOF
say "PostgreSQL $server can become PostgreSQL $own, by a dump of all databases"
