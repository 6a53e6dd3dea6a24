/**
 * Attributes of a user that policies may use (docs/authorization.md "What a policy knows"), in addition to groups and
 * roles.
 */
export type UserAttributes = {
  externalId: string | null;
  idpAccountsId: string | null;
  displayName: string;
  primaryChannel: 'TELEGRAM' | 'VK' | null;
  locale: 'ru' | 'en';
  nationalityType: 'domestic' | 'foreign' | null;
  fundingType: 'budget' | 'contract' | null;
  educationForm: 'full_time' | 'part_time' | 'remote' | null;
};
