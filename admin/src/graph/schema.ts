import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { dataTexts } from '../texts/data.en.ts';

export type Definition = Schemas['GraphDefinition'];
export type Relationship = Schemas['Relationship'];

/** What may be related to what, and which permissions follow. */
export const useGraphSchema = () =>
  useQuery({
    queryKey: ['graph', 'schema'],
    queryFn: async () => answered(await api.GET('/api/admin/schema/definitions')),
  });

type Word = keyof typeof dataTexts.relationships.word;
const WORDS = dataTexts.relationships.word;
const isWord = (name: string): name is Word => Object.hasOwn(WORDS, name);

const plain = (text: string): string => text.toLowerCase().replaceAll('_', ' ');

/**
 * Names of the schema for people: the word for it, and the name itself where they differ, because policies use the name. A name that a
 * later schema brings stays as it is.
 */
export function useGraphWords(): { word: (name: string) => string; label: (name: string) => string } {
  const { t } = useTranslation();
  const word = (name: string): string => (isWord(name) ? t(`relationships.word.${name}`) : name);
  const label = (name: string): string => {
    const text = word(name);
    return plain(text) === plain(name) ? text : `${text} · ${name}`;
  };
  return { word, label };
}

/** Permissions of a type that a relation gives there by itself; what lies below inherits them along `parent`. */
export const givenBy = (definition: Definition | undefined, relation: string): string[] =>
  (definition?.permissions ?? [])
    .filter(p =>
      p.expression
        .split('+')
        .map(part => part.trim())
        .includes(relation),
    )
    .map(p => p.name);

/** An object or a relationship as the graph spells it: `faculty:physics` into its type and its id. */
export function objectOf(text: string): { type: string; id: string } {
  const at = text.indexOf(':');
  return { type: text.slice(0, at), id: text.slice(at + 1) };
}
