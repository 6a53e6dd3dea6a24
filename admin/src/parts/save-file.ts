/** Gives a text to the browser as a file. */
export function saveText(name: string, text: string, mime: 'text/csv' | 'application/json' | 'text/plain'): void {
  // The mark tells spreadsheets that the text is UTF-8.
  const mark = mime === 'text/csv' ? '\uFEFF' : '';
  saveBlob(name, new Blob([mark, text], { type: `${mime};charset=utf-8` }));
}

/** The same with bytes. */
export function saveBlob(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
