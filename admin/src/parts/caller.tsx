import { Text } from '@mantine/core';
import { LinkAnchor } from './links.tsx';
import { PersonAnchor } from './person-anchor.tsx';

/** Who called, as filters take it; a user leads to the page of the person, a key to the list that has its name. */
export function Caller({ principal }: { principal: string }) {
  const user = /^user:(\d+)$/.exec(principal)?.[1];
  return (
    <Text span size="sm" ff="monospace">
      {user !== undefined ? (
        <PersonAnchor user={Number(user)}>{principal}</PersonAnchor>
      ) : principal.startsWith('service:') ? (
        <LinkAnchor to="/admin/service-keys">{principal}</LinkAnchor>
      ) : (
        principal
      )}
    </Text>
  );
}
