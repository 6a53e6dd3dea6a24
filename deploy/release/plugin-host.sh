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
exec "$release/bin/node" --disable-warning=ExperimentalWarning "$release/src/main.js" "$@"
