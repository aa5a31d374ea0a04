package vmgroup

// govcStub is a govc whose datacenter is the folder $STUB/vm: a machine is a
// file with its number of CPUs, its memory and its power state. The stub writes
// its arguments to $STUB/calls. The call with the number in $STUB/fail fails;
// if $STUB/how is "lost", it fails after it took effect. $STUB/parallel gets the
// number of clones in progress at the start of each clone. A clone ends when the
// number of clones in $STUB/barrier have started, if the file exists, or after 10
// seconds.
const govcStub = `#!/bin/sh
set -eu
printf '%s\n' "$*" >>"$STUB/calls"
refuse() { printf 'govc: %s\n' "$1" >&2; exit 1; }
here() { case $1 in /DC0/*) printf '%s\n' "$STUB/${1#/DC0/}" ;; *) printf '%s\n' "$STUB/$1" ;; esac; }
number=$(wc -l <"$STUB/calls")
last=
if [ -e "$STUB/fail" ] && [ "$number" -eq "$(cat "$STUB/fail")" ]; then
  [ -e "$STUB/how" ] || refuse "call $number is refused"
  last=lost
fi
machine() {
  [ -f "$(here "$1")" ] || refuse "vm '$1' not found"
  read -r cpu memory power <"$(here "$1")"
}
case $1 in
  about) [ "$GOVC_PASSWORD" = "$STUB_PASSWORD" ] || refuse 'ServerFaultCode: Login failure' ;;
  session.logout) ;;
  folder.info) [ -d "$(here "$2")" ] || refuse "folder '$2' not found"; echo "Name: $2" ;;
  folder.create) mkdir "$(here "$2")" 2>/dev/null || refuse 'ServerFaultCode: DuplicateName' ;;
  ls)
    shift
    kind=any
    if [ "$1" = -t ]; then kind=$2; shift 2; fi
    for path in "$(here "$1")"/*; do
      case $kind in
        Folder) [ -d "$path" ] || continue ;;
        VirtualMachine) [ -f "$path" ] || continue ;;
        *) [ -e "$path" ] || continue ;;
      esac
      printf '/DC0/%s\n' "${path#"$STUB"/}"
    done
    ;;
  vm.clone)
    [ "$2 $4 $6 $8 ${10}" = '-vm -folder -c -m -on=false' ] || refuse "flags: $*"
    [ -f "$STUB/vm/$3" ] || refuse "vm '$3' not found"
    [ -d "$(here "$5")" ] || refuse "folder '$5' not found"
    case " $(cat "$STUB/broken" 2>/dev/null) " in *" ${11} "*) refuse "no space for ${11}" ;; esac
    (set -C; echo "$7 $9 poweredOff" >"$(here "$5")/${11}") 2>/dev/null || refuse "the name '${11}' already exists"
    mkdir "$STUB/cloning/${11}"
    ls "$STUB/cloning" | wc -l >>"$STUB/parallel"
    attempts=0
    while [ "$attempts" -lt 200 ] && [ "$(wc -l <"$STUB/parallel")" -lt "$(cat "$STUB/barrier" 2>/dev/null || echo 0)" ]; do
      sleep 0.05
      attempts=$((attempts + 1))
    done
    rmdir "$STUB/cloning/${11}"
    ;;
  vm.info) if [ -f "$STUB/vm/$2" ]; then echo "Name: $2"; fi ;;
  object.collect)
    machine "$2"
    [ "$3 $4 $5" = 'runtime.powerState config.hardware.numCPU config.hardware.memoryMB' ] || refuse "properties: $*"
    printf '%s\n' "runtime.powerState types.PowerState $power" "config.hardware.numCPU int32 $cpu" "config.hardware.memoryMB int32 $memory"
    ;;
  object.rename) mv "$(here "$2")" "$(dirname "$(here "$2")")/$3" ;;
  vm.power)
    shift
    case $1 in
      -on) machine "$2"; [ "$power" != poweredOn ] || refuse 'the state is wrong'; echo "$cpu $memory poweredOn" >"$(here "$2")" ;;
      -s) machine "$3"; [ "$power" = poweredOn ] || refuse 'the state is wrong'; echo "$cpu $memory poweredOff" >"$(here "$3")" ;;
      *) refuse "flag $1" ;;
    esac
    ;;
  vm.change) machine "$3"; [ "$power" = poweredOff ] || refuse 'the machine is on'; echo "$5 $7 poweredOff" >"$(here "$3")" ;;
  vm.destroy) machine "$2"; rm "$(here "$2")" ;;
  object.destroy) rmdir "$(here "$2")" 2>/dev/null || refuse 'more than a folder would go' ;;
  *) refuse "no command $1" ;;
esac
[ -z "$last" ] || refuse "the answer to call $number is lost"
`
