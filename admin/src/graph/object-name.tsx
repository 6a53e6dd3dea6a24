import { Text } from '@mantine/core';
import { LinkAnchor } from '../parts/links.tsx';
import { useGraphWords } from './schema.ts';

/** An object of the graph by its name, with what it is and its id, which policies use. Leads to its relationships. */
export function ObjectName({
  id,
  name,
  side,
  type,
}: {
  type: string;
  id: string;
  name: string | null;
  side: 'object' | 'subject';
}) {
  const { word } = useGraphWords();
  const search = side === 'object' ? { type, object: id } : { subject_type: type, subject: id };
  return (
    <div style={{ minWidth: 0 }}>
      <LinkAnchor
        to="/admin/relationships"
        search={search}
        size="sm"
        fw={500}
        c="inherit"
        style={{ overflowWrap: 'break-word' }}
      >
        {name ?? id}
      </LinkAnchor>
      <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
        {word(type)}{' '}
        <Text span ff="monospace" size="xs">
          {id}
        </Text>
      </Text>
    </div>
  );
}
