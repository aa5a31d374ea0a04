#!/bin/sh
# Checks, before an upgrade or a rollback to another image, that its programs can read the existing data. Changes
# nothing. If the image cannot be pulled, the check fails and the pods keep running.
# With the argument "answers", before a snapshot: checks that a server answers.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

own=$(major_of pg_dump)
if ! server=$(server_major); then
  [ "${1:-}" != answers ] || die "$PGHOST does not answer, so that there can be no snapshot. snapshotOnDelete is what asks for one"
  say "$PGHOST does not answer, so that nothing can be said; data of another major version will be left as they are"
  exit 0
fi
if [ "${1:-}" = answers ]; then
  say "PostgreSQL $server answers"
  exit 0
fi
if [ "$server" = "$own" ]; then
  say "PostgreSQL $own follows PostgreSQL $server: nothing to do"
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
    die "the upgrade to PostgreSQL $server is not finished: let it, or go back, before PostgreSQL $own"
    ;;
esac
if [ "$own" -lt "$server" ]; then
  die "the data are of PostgreSQL $server, and PostgreSQL $own cannot read them: restore a dump into a database of its own"
fi
if [ "${MAJOR_UPGRADE:-}" != DumpAndRestore ]; then
  die "the data are of PostgreSQL $server, and the image is of PostgreSQL $own: majorUpgrade is ${MAJOR_UPGRADE:-not set}"
fi
say "PostgreSQL $server is to become PostgreSQL $own, by a dump of all databases"
