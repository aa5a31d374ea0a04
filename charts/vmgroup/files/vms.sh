#!/bin/sh
# The virtual machines of one group, in a folder of vSphere that is theirs alone.
#
#   vms.sh ensure    there are as many as wanted, of the wanted size, and they are on
#   vms.sh destroy   there are none, and no folder
#   vms.sh check     says whether it is as ensure makes it, and changes nothing
#
# What is to be done is found out by looking, so that it may be stopped anywhere and be run again.
# Machines are <VM_NAME>-0, -1 and so on; what else is in the folder is left alone. Every call of govc
# that fails ends the script. From the environment come
#
#   GOVC_URL, GOVC_USERNAME, GOVC_PASSWORD and what else govc reads
#   VM_PARENT, VM_FOLDER    where the folder is, which must be there, and the folder's name
#   VM_NAME                 what the names of the machines begin with
#   VM_TEMPLATE             what they are cloned from
#   VM_CPU, VM_MEMORY       their processors and megabytes
#   VM_REPLICAS             how many there are to be
set -eu

say() {
  printf 'vms: %s\n' "$*"
}

fail() {
  printf 'vms: %s\n' "$*" >&2
  exit 1
}

# folder prints the path of the group's folder, or nothing where there is none. The parent is asked for
# first: govc lists what is not there as it lists what is empty, and a misspelled parent would pass for
# a group that has no machines.
folder() {
  govc folder.info "$VM_PARENT" >/dev/null || return 1
  folders=$(govc ls -t Folder "$VM_PARENT") || return 1
  printf '%s\n' "$folders" | while IFS= read -r path; do
    if [ "${path##*/}" = "$VM_FOLDER" ]; then
      printf '%s\n' "$path"
    fi
  done
}

# machines prints number and path of each machine of the group that is in a folder.
machines() {
  paths=$(govc ls -t VirtualMachine "$1") || return 1
  printf '%s\n' "$paths" | while IFS= read -r path; do
    name=${path##*/}
    number=${name#"$VM_NAME"-}
    case $number in
      "$name" | '' | *[!0-9]* | 0?*) ;;
      *) printf '%s %s\n' "$number" "$path" ;;
    esac
  done
}

# path_of prints the path of one number of what machines printed, or nothing.
path_of() {
  printf '%s\n' "$2" | while read -r number path; do
    if [ "$number" = "$1" ]; then
      printf '%s\n' "$path"
    fi
  done
}

# property prints a property of a machine.
property() {
  govc object.collect -s "$1" "$2"
}

# fits tells whether a machine has the wanted size.
fits() {
  cpu=$(property "$1" config.hardware.numCPU) || return 2
  memory=$(property "$1" config.hardware.memoryMB) || return 2
  [ "$cpu" = "$VM_CPU" ] && [ "$memory" = "$VM_MEMORY" ]
}

# fit gives a machine the wanted size, for which it has to be off, and turns it on.
fit() {
  power=$(property "$1" runtime.powerState)
  code=0
  fits "$1" || code=$?
  case $code in
    0) ;;
    1)
      if [ "$power" != poweredOff ]; then
        # The guest is asked to; one that cannot be is switched off.
        govc vm.power -s -force "$1" >/dev/null
        power=poweredOff
      fi
      govc vm.change -vm "$1" -c "$VM_CPU" -m "$VM_MEMORY"
      say "resized ${1##*/}"
      ;;
    *) exit 1 ;;
  esac
  if [ "$power" != poweredOn ]; then
    govc vm.power -on "$1" >/dev/null
    say "turned ${1##*/} on"
  fi
}

ensure() {
  group=$(folder)
  if [ -z "$group" ]; then
    govc folder.create "$VM_PARENT/$VM_FOLDER"
    group=$(folder)
    say "made the folder $group"
  fi
  there=$(machines "$group")

  wanted=0
  while [ "$wanted" -lt "$VM_REPLICAS" ]; do
    machine=$(path_of "$wanted" "$there")
    if [ -z "$machine" ]; then
      machine=$group/$VM_NAME-$wanted
      govc vm.clone -vm "$VM_TEMPLATE" -folder "$group" -c "$VM_CPU" -m "$VM_MEMORY" -on=false "$VM_NAME-$wanted" >/dev/null
      say "cloned ${machine##*/} from $VM_TEMPLATE"
    fi
    fit "$machine"
    wanted=$((wanted + 1))
  done

  printf '%s\n' "$there" | while read -r surplus machine; do
    if [ -n "$machine" ] && [ "$surplus" -ge "$VM_REPLICAS" ]; then
      govc vm.destroy "$machine" </dev/null
      say "destroyed ${machine##*/}"
    fi
  done
  say "running, as wanted: $VM_REPLICAS"
}

destroy() {
  group=$(folder)
  if [ -z "$group" ]; then
    say "there is nothing to destroy"
    return
  fi
  # Again until there are none: what was stopped a moment ago may have begun to clone one more. Once the
  # folder is gone nothing can be cloned into it.
  there=$(machines "$group")
  while [ -n "$there" ]; do
    printf '%s\n' "$there" | while read -r _ machine; do
      govc vm.destroy "$machine" </dev/null
      say "destroyed ${machine##*/}"
    done
    there=$(machines "$group")
  done
  # To destroy a folder is to destroy what is in it, so one that is not empty stays.
  others=$(govc ls "$group")
  if [ -n "$others" ]; then
    say "the folder $group stays: somebody else has put something there"
    return
  fi
  govc object.destroy "$group" >/dev/null
  say "destroyed the folder $group"
}

check() {
  group=$(folder)
  if [ -z "$group" ]; then
    fail "there is no folder $VM_PARENT/$VM_FOLDER"
  fi
  there=$(machines "$group")
  wanted=0
  while [ "$wanted" -lt "$VM_REPLICAS" ]; do
    machine=$(path_of "$wanted" "$there")
    if [ -z "$machine" ]; then
      fail "there is no $VM_NAME-$wanted"
    fi
    power=$(property "$machine" runtime.powerState)
    if [ "$power" != poweredOn ]; then
      fail "${machine##*/} is $power"
    fi
    fits "$machine" || fail "${machine##*/} has not the wanted size"
    wanted=$((wanted + 1))
  done
  printf '%s\n' "$there" | while read -r surplus machine; do
    if [ -n "$machine" ] && [ "$surplus" -ge "$VM_REPLICAS" ]; then
      fail "${machine##*/} is one too many"
    fi
  done
  say "running, as wanted: $VM_REPLICAS"
}

: "${VM_PARENT:?is not set}" "${VM_FOLDER:?is not set}" "${VM_NAME:?is not set}"
# What holds a password is not told, as govc would where it cannot make sense of it.
case ${GOVC_URL:-} in
  '') fail "the Secret has no VC_HOST" ;;
  *@*) fail "VC_HOST holds more than a host: give the user as VC_USER and the password as VC_PASS" ;;
esac
case ${1:-} in
  ensure | destroy | check) ;;
  *) fail "expected ensure, destroy or check" ;;
esac

# One try and no more with a password that is wrong, or the account is soon locked.
govc about >/dev/null
trap 'govc session.logout >/dev/null 2>&1 || :' EXIT
# Process 1 of a container ends on no signal that it has not asked for.
trap 'exit 143' TERM INT
"$1"
