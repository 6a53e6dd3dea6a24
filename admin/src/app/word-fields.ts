import i18next from 'i18next';

type Field = HTMLInputElement | HTMLTextAreaElement;

const isField = (target: unknown): target is Field =>
  target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;

/** What is wrong with a field, in the language of the page. */
function wordsFor({ type, validity }: Field): string {
  if (validity.valueMissing) return i18next.t('field.missing');
  if (validity.typeMismatch && type === 'email') return i18next.t('field.email');
  if (validity.rangeUnderflow && type === 'date') return i18next.t('field.later');
  return i18next.t('field.wrong');
}

/** Words what the browser finds wrong with a field: it would say it in its own language, which may not be the page's. */
export function wordFields(): void {
  document.addEventListener(
    'invalid',
    ({ target }) => {
      if (isField(target)) target.setCustomValidity(wordsFor(target));
    },
    true,
  );
  const forget = (field: unknown): void => {
    if (isField(field)) field.setCustomValidity('');
  };
  // A field with words of its own stays wrong until they are taken back: when it changes, and when its form is sent again.
  document.addEventListener('input', ({ target }) => forget(target), true);
  document.addEventListener(
    'click',
    ({ target }) => {
      const button = target instanceof Element ? target.closest('button') : null;
      for (const field of button?.form?.elements ?? []) forget(field);
    },
    true,
  );
}
