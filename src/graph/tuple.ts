/**
 * An edge of the relationship graph: `<resource>#<relation>@<subject>` (docs/authorization.md "Relationship graph").
 * Ids are the service's, not encoded for the store.
 */
export type Tuple = {
  resourceType: string;
  resourceId: string;
  relation: string;
  subjectType: string;
  subjectId: string;
  /** Empty for the object itself. */
  subjectRelation: string;
};

/** Matches tuples that are equal in every member it has. A subject id is only allowed together with its type. */
export type TupleFilter = Partial<Omit<Tuple, 'subjectRelation' | 'subjectId'>> &
  ({ subjectId?: never } | { subjectType: string; subjectId?: string });

/** A unique key of a tuple; NUL separates the parts because no id contains it. */
export const tupleKey = (t: Tuple): string =>
  [t.resourceType, t.resourceId, t.relation, t.subjectType, t.subjectId, t.subjectRelation].join('\0');

/** A tuple in the usual notation: `faculty:f1#dean@user:e1`. */
export function tupleText(t: Tuple): string {
  const relation = t.subjectRelation === '' ? '' : `#${t.subjectRelation}`;
  return `${t.resourceType}:${t.resourceId}#${t.relation}@${t.subjectType}:${t.subjectId}${relation}`;
}

export function matchesFilter(f: TupleFilter, t: Tuple): boolean {
  return (
    (f.resourceType === undefined || f.resourceType === t.resourceType) &&
    (f.resourceId === undefined || f.resourceId === t.resourceId) &&
    (f.relation === undefined || f.relation === t.relation) &&
    (f.subjectType === undefined || f.subjectType === t.subjectType) &&
    (f.subjectId === undefined || f.subjectId === t.subjectId)
  );
}
