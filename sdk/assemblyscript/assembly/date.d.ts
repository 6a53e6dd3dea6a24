// For editors, which know the `Date` of the language as a global alone: the compiler finds it in this file of its library.
declare module "date" {
  class LibraryDate extends Date {}
  export { LibraryDate as Date };
}
