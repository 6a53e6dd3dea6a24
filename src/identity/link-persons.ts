import type { UserAttributes } from './user-attributes.ts';

/** Attributes of a person in the university's data; null where they are unknown. */
export type LinkedPerson = Omit<UserAttributes, 'externalId' | 'locale' | 'fundingType' | 'educationForm'> & {
  externalId: string;
  locale: UserAttributes['locale'] | null;
  /** The account in the data before this import. */
  formerIdpAccountsId: string | null;
};

/** A user with the external id or the account of one of these persons. */
export type LinkCandidate = {
  id: string;
  external_id: string | null;
  idp_accounts_id: string | null;
  is_used: boolean;
  is_admin: boolean;
  /** Whether the data have an active person with this external id. */
  is_person: boolean;
};

/** The decision for one person: a new or existing user, and the account it gets. */
export type Link = { person: LinkedPerson; id: string | null; idp: string | null };

export type Links = {
  links: Link[];
  /** Users that were never used, and whose person is now linked to another user. */
  absorbed: string[];
  /** Users whose account moves to another user. */
  released: string[];
  /** Users who lose their account: sessions opened with it end. */
  relinked: string[];
  /** Persons who are linked to another user than before, or to a new one. */
  moved: string[];
  /** Why the account of a person cannot be linked, by external id. */
  conflicts: Map<string, string>;
};

/**
 * Matches imported people to user accounts; never touches administrators. Only administrators decide who may log in as
 * an administrator, so an import neither gives such a user an account or a person nor removes them.
 */
export function decideLinks(persons: readonly LinkedPerson[], rows: readonly LinkCandidate[]): Links {
  const byPerson = new Map(rows.filter(r => r.external_id !== null).map(r => [r.external_id, r]));
  const byAccount = new Map(rows.filter(r => r.idp_accounts_id !== null).map(r => [r.idp_accounts_id, r]));
  /** Accounts that these persons release. */
  const givenUp = new Set<string>();
  for (const p of persons) {
    const own = byPerson.get(p.externalId);
    if (
      own?.idp_accounts_id != null &&
      !own.is_admin &&
      p.idpAccountsId !== null &&
      own.idp_accounts_id !== p.idpAccountsId
    )
      givenUp.add(own.idp_accounts_id);
  }
  const taken = new Map<string, string>();
  const out: Links = { links: [], absorbed: [], released: [], relinked: [], moved: [], conflicts: new Map() };

  /** Links an account. @returns why it cannot be linked, or null */
  const link = (person: LinkedPerson): string | null => {
    const { externalId, idpAccountsId } = person;
    const own = byPerson.get(externalId);
    const account = own?.idp_accounts_id ?? null;
    const keep = (idp: string | null): null => {
      if (account !== null && account !== idp && own !== undefined) out.relinked.push(own.id);
      out.links.push({ person, id: own?.id ?? null, idp });
      // The person may have positions from before, which the former user had.
      if (own === undefined) out.moved.push(externalId);
      return null;
    };
    if (idpAccountsId === null)
      return keep(account === person.formerIdpAccountsId && own?.is_admin !== true ? null : account);
    if (account === idpAccountsId) {
      taken.set(idpAccountsId, externalId);
      return keep(account);
    }
    if (own?.is_admin === true)
      return `is not the account of user ${own.id}, who is an administrator: an administrator changes it`;
    const holder = byAccount.get(idpAccountsId);
    if (holder?.is_admin === true)
      return `is the account of user ${holder.id}, who is an administrator: an administrator links them`;
    const isOthers = holder !== undefined && holder.external_id !== null;
    // Another person has the account and keeps it. A person who has left, or gets another account, releases it.
    const keeper = isOthers && holder.is_person && !givenUp.has(idpAccountsId) ? holder.external_id : null;
    const other = taken.get(idpAccountsId) ?? keeper;
    if (other !== null) return `is the account of person ${JSON.stringify(other)} already`;
    if (holder === undefined || isOthers) {
      taken.set(idpAccountsId, externalId);
      if (holder !== undefined && !givenUp.has(idpAccountsId)) {
        out.released.push(holder.id);
        out.relinked.push(holder.id);
      }
      return keep(idpAccountsId);
    }
    // The user logged in before the university's data named the account.
    if (own?.is_used === true)
      return `is the account of user ${holder.id}, and the person is user ${own.id}, who has logged in: remove one of them`;
    taken.set(idpAccountsId, externalId);
    if (own !== undefined) out.absorbed.push(own.id);
    out.moved.push(externalId);
    out.links.push({ person, id: holder.id, idp: idpAccountsId });
    return null;
  };

  for (const person of persons) {
    const problem = link(person);
    if (problem !== null) out.conflicts.set(person.externalId, problem);
  }
  return out;
}
