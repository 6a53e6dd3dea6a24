import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { answered, api, type Schemas } from '../api/client.ts';
import { KeySecret } from '../parts/key-secret.tsx';

type Props = { made: Schemas['ServiceKey'] & { key: string }; children?: ReactNode; onDone: () => void };

/** The secret of a service key, with a call of the first trigger it opens. */
export function ServiceKeySecret({ children, made, onDone }: Props) {
  const [first] = made.scopes;
  const plugin = first?.plugin_id ?? '';
  const triggers = useQuery({
    queryKey: ['plugins', plugin, 'triggers'],
    queryFn: async () =>
      answered(await api.GET('/api/admin/plugins/{id}/triggers', { params: { path: { id: plugin } } })),
    enabled: plugin !== '',
  });
  const trigger = triggers.data?.items.find(s => s.trigger === first?.trigger) ?? triggers.data?.items[0];
  const method = trigger?.methods[0] ?? 'GET';
  const example = [
    'curl',
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    `-H 'Authorization: Bearer ${made.key}'`,
    `'${location.origin}/api/triggers/http/${plugin}${trigger?.path ?? '/'}'`,
  ].join(' ');
  return (
    <KeySecret name={made.name} secret={made.key} example={example} onDone={onDone}>
      {children}
    </KeySecret>
  );
}
