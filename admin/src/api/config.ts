import { useQuery } from '@tanstack/react-query';
import { answered, api } from './client.ts';

/** The effective configuration, with where each value comes from. */
export const useConfig = (isAsked = true) =>
  useQuery({
    queryKey: ['config'],
    queryFn: async () => answered(await api.GET('/api/admin/config')),
    enabled: isAsked,
  });
