#!/bin/sh
# The command plugin-host of a release. It follows links to itself one by one: a link to the current release in the
# path stays as it is, so that a reload finds the release it leads to by then.
program=$0
while [ -h "$program" ]; do
  target=$(readlink "$program")
  case $target in
    /*) program=$target ;;
    *) program=$(dirname "$program")/$target ;;
  esac
done
release=$(cd "$(dirname "$program")/.." && pwd -L)
# A reload happens next to a service under load.
case ${1-} in
  reload) exec nice -n 19 "$release/bin/node" --disable-warning=ExperimentalWarning "$release/src/main.js" "$@" ;;
esac
exec "$release/bin/node" --disable-warning=ExperimentalWarning "$release/src/main.js" "$@"
