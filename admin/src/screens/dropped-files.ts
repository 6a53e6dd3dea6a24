/** Files dropped on the list of plugins, on their way to the upload. */
let dropped: readonly File[] = [];

export function keepDropped(files: readonly File[]): void {
  dropped = files;
}

/** Takes what was dropped, once. */
export function takeDropped(): readonly File[] {
  const files = dropped;
  dropped = [];
  return files;
}
