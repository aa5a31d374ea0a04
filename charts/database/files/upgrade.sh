#!/bin/sh
# Before an upgrade to another image: for a later major version, blocks connections, dumps all databases and writes a
# state file, from which prepare.sh knows that the dump is complete. On any failure, connections are allowed again and
# nothing is changed.
set -eu
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

own=$(major_of pg_dump)
if ! server=$(server_major) || [ "$server" = "$own" ]; then
  say "nothing to upgrade"
  exit 0
fi
sh "$(dirname "$0")/check.sh"
[ "$own" -gt "$server" ] || exit 0

undo() {
  status=$?
  trap - EXIT
  if [ "$status" != 0 ]; then
    unlock || say "the databases could not be opened again: the next try, or a rollback, does"
  fi
  exit "$status"
}
trap undo EXIT
trap 'exit 143' TERM INT

# Superusers such as this script can still connect. The previous limits are stored until they are restored, also
# after an interruption.
umask 077
if [ ! -e "$BACKUPS/limits.sql" ]; then
  query > "$BACKUPS/limits.sql.new" <<'SQL'
SELECT format('ALTER DATABASE %I CONNECTION LIMIT %s;', datname, datconnlimit) FROM pg_database WHERE datallowconn AND NOT datistemplate;
SQL
  mv "$BACKUPS/limits.sql.new" "$BACKUPS/limits.sql"
fi
query > /dev/null <<'SQL'
SELECT format('ALTER DATABASE %I CONNECTION LIMIT 0', datname) FROM pg_database WHERE datallowconn AND NOT datistemplate \gexec
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();
SQL
say "the databases take no connections until the upgrade is done"

name=upgrade/$server-$own-$(date -u +%Y%m%dT%H%M%SZ)
dump_all "$name"
for folder in "$BACKUPS"/upgrade/*; do
  [ "$folder" = "$BACKUPS/$name" ] || rm -rf "$folder"
done
set_mark upgrade "$own $name"
