import i18next from 'i18next';
import { initReactI18next } from 'react-i18next';
import { en } from './en.ts';

export const LANGUAGES = ['en', 'ru'] as const;
export type Language = (typeof LANGUAGES)[number];
const KEPT = 'plugin-host-language';

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'translation';
    resources: { translation: typeof en };
  }
}

const isLanguage = (text: string | null): text is Language => LANGUAGES.some(l => l === text);

/** The language chosen before, or else the browser's. Only English is in the first view. */
export async function startTexts(): Promise<void> {
  const kept = localStorage.getItem(KEPT);
  const wanted = isLanguage(kept) ? kept : navigator.language.startsWith('ru') ? 'ru' : 'en';
  await i18next.use(initReactI18next).init({
    lng: 'en',
    fallbackLng: 'en',
    resources: { en: { translation: en } },
    interpolation: { escapeValue: false },
    // Names of permissions are keys, and have a colon.
    nsSeparator: false,
  });
  // A page in another language is better than none.
  await show(wanted).catch(() => show('en'));
}

async function show(language: Language): Promise<void> {
  if (language === 'ru' && !i18next.hasResourceBundle('ru', 'translation')) {
    const { ru } = await import('./ru.ts');
    i18next.addResourceBundle('ru', 'translation', ru);
  }
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
}

/** Shows the pages in a language from now on. */
export async function switchLanguage(language: Language): Promise<void> {
  await show(language);
  localStorage.setItem(KEPT, language);
}

export const currentLanguage = (): Language => (i18next.language === 'ru' ? 'ru' : 'en');

/** The variant of the page's language that the browser asks for: British English writes the day first. */
export const dateLocale = (): string =>
  navigator.languages.find(l => LANGUAGE_TAG.test(l) && l.split('-')[0] === currentLanguage()) ?? currentLanguage();

/** What a system names beyond that, `en-US@posix`, is no language for dates. */
const LANGUAGE_TAG = /^[a-z]{2}(-[A-Za-z0-9]{2,8})*$/;
