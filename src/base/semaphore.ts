/** Bounds how many tasks run at a time, in order of arrival: `const semaphore = makeSemaphore(2)`, `await semaphore(task)`. */
export { default as makeSemaphore, type LimitFunction as Semaphore } from 'p-limit';
