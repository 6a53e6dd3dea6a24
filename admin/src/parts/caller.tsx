import { Text } from '@mantine/core';
import { PersonAnchor } from './person-anchor.tsx';

/** Who called, as filters take it; a user leads to the page of the person. */
export function Caller({ principal }: { principal: string }) {
  const user = /^user:(\d+)$/.exec(principal)?.[1];
  return (
    <Text span size="sm" ff="monospace">
      {user === undefined ? principal : <PersonAnchor user={Number(user)}>{principal}</PersonAnchor>}
    </Text>
  );
}
